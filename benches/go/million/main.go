// The goroutines of the bench `million`: all of them wait on one channel until
// it is closed, or sleep for a while.
//
// The bench starts it; benches/million/main.rs says what is counted. It prints
// its figures as JSON.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	wait  = flag.String("case", "parked", "parked or sleeping")
	count = flag.Int("count", 50_000, "how many goroutines")
	sleep = flag.Duration("sleep", time.Second, "how long one sleeps")
	bound = flag.Duration("bound", time.Minute, "give up after that")
)

type sample struct {
	Count    int     `json:"count"`
	Submit   float64 `json:"submit_s"`
	Wall     float64 `json:"wall_s"`
	CPU      float64 `json:"cpu_s"`
	Resident int64   `json:"resident_bytes"`
	IsPeak   bool    `json:"is_peak"`
}

func fail(why ...any) {
	fmt.Fprintln(os.Stderr, append([]any{"goroutines:"}, why...)...)
	os.Exit(1)
}

// resident is a field of /proc/self/status that is in kB, in bytes.
func resident(field string) int64 {
	status, err := os.Open("/proc/self/status")
	if err != nil {
		fail(err)
	}
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if rest, is := strings.CutPrefix(lines.Text(), field+":"); is {
			var kB int64
			if _, err := fmt.Sscanf(rest, "%d kB", &kB); err != nil {
				fail(err)
			}
			return kB << 10
		}
	}
	fail("no", field)
	return 0
}

func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		fail(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// warmUp sees to it that each processor has its thread before the first
// reading, as every contender does.
func warmUp() {
	procs := runtime.GOMAXPROCS(0)
	var arrived atomic.Int64
	var all sync.WaitGroup
	all.Add(procs)
	for range make([]struct{}, procs) {
		go func() {
			defer all.Done()
			arrived.Add(1)
			for arrived.Load() < int64(procs) {
			}
		}()
	}
	all.Wait()
}

func main() {
	flag.Parse()
	time.AfterFunc(*bound, func() { fail("not done after", *bound, "given up") })
	warmUp()

	before := resident("VmRSS")
	cpu := cpuTime()
	start := time.Now()

	// What the Rust contenders have in their handles: a place for the result.
	results := make([]uint64, *count)
	release := make(chan struct{})
	allParked := make(chan struct{})
	var toCome atomic.Int64
	toCome.Store(int64(*count))
	var running sync.WaitGroup
	running.Add(*count)

	for i := range results {
		a, b := uint64(i), 2*uint64(i)
		result := &results[i]
		if *wait == "sleeping" {
			go func() {
				defer running.Done()
				time.Sleep(*sleep)
				*result = a + b
			}()
		} else {
			go func() {
				defer running.Done()
				if toCome.Add(-1) == 0 {
					close(allParked)
				}
				<-release
				*result = a + b
			}()
		}
	}
	found := sample{Count: *count, Submit: time.Since(start).Seconds()}
	if *wait != "sleeping" {
		<-allParked
		found.Resident = resident("VmRSS") - before
		close(release)
	}
	running.Wait()

	found.Wall = time.Since(start).Seconds()
	found.CPU = (cpuTime() - cpu).Seconds()
	if *wait == "sleeping" {
		found.Resident = resident("VmHWM") - before
		found.IsPeak = true
	}
	var sum uint64
	for _, result := range results {
		sum += result
	}
	if n := uint64(*count); sum != 3*n*(n-1)/2 {
		fail("a wrong sum:", sum)
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		fail(err)
	}
}
