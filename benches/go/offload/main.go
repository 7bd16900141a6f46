// The goroutines of the bench `offload`: a goroutine for each job, its result
// through a channel. The bench starts it; what is measured stands at the top of
// benches/offload/main.rs. It prints JSON, nanoseconds a job.
package main

import (
	"encoding/json"
	"flag"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	hotTrips  = flag.Int("hot", 1000, "round trips, hot")
	coldTrips = flag.Int("cold", 50, "round trips, cold")
	busyTrips = flag.Int("busy", 50, "round trips, busy")
	batchJobs = flag.Int("batch", 50000, "jobs in the batch")
)

const (
	gap  = time.Millisecond
	load = 50 * time.Microsecond
)

func main() {
	flag.Parse()
	// As in the Rust contenders, the first round warms up.
	batch(*batchJobs)
	found := map[string]float64{}

	cpu, start := cpuTime(), time.Now()
	for range make([]struct{}, *hotTrips) {
		trip()
	}
	found["hot"] = each(time.Since(start), *hotTrips)
	found["hot_cpu"] = each(cpuTime()-cpu, *hotTrips)

	cpu = cpuTime()
	trips := make([]float64, 0, *coldTrips)
	for range make([]struct{}, *coldTrips) {
		time.Sleep(gap)
		start := time.Now()
		trip()
		trips = append(trips, each(time.Since(start), 1))
	}
	found["cold"] = median(trips)
	found["cold_cpu"] = each(cpuTime()-cpu, *coldTrips)

	found["busy"] = median(busy(*busyTrips))

	start = time.Now()
	batch(*batchJobs)
	found["batch"] = each(time.Since(start), *batchJobs)

	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		panic(err)
	}
}

func trip() {
	result := make(chan int)
	go func() { result <- 1 }()
	if <-result != 1 {
		panic("another's result")
	}
}

// All of them share a channel with room for all results: no wait of one for
// another is counted.
func batch(jobs int) {
	results := make(chan int, jobs)
	for i := range make([]struct{}, jobs) {
		go func() { results <- i + jobs }()
	}
	sum := 0
	for range make([]struct{}, jobs) {
		sum += <-results
	}
	if sum != jobs*(jobs-1)/2+jobs*jobs {
		panic("a result is lost")
	}
}

func busy(trips int) []float64 {
	var over atomic.Bool
	ended := make(chan struct{})
	inFlight := 4 * runtime.GOMAXPROCS(0)
	go func() {
		done := make(chan struct{}, inFlight)
		spin := func() {
			for start := time.Now(); time.Since(start) < load; {
			}
			done <- struct{}{}
		}
		for range make([]struct{}, inFlight) {
			go spin()
		}
		for left := inFlight; left > 0; {
			<-done
			if over.Load() {
				left--
			} else {
				go spin()
			}
		}
		close(ended)
	}()
	found := make([]float64, 0, trips)
	for range make([]struct{}, trips) {
		time.Sleep(gap)
		start := time.Now()
		trip()
		found = append(found, each(time.Since(start), 1))
	}
	over.Store(true)
	<-ended
	return found
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func each(total time.Duration, n int) float64 {
	return float64(total.Nanoseconds()) / float64(n)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
