// The goroutines of the bench `switch`: how long a Gosched takes, and the start
// of a goroutine until another has what it made.
//
// The bench starts it; benches/switch/measure.rs has the same cases in Rust. It
// prints one figure for each case as JSON: nanoseconds each.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

var (
	procs    = flag.Int("procs", 0, "GOMAXPROCS; 0: as it comes")
	switches = flag.Int("switches", 20000, "Gosched calls of all goroutines together")
	starts   = flag.Int("starts", 2000, "goroutines that are started and joined one at a time")
	bound    = flag.Duration("bound", time.Minute, "give up after that")
)

func each(begun time.Time, n int) float64 {
	return float64(time.Since(begun)) / float64(n)
}

// gosched counts from when all goroutines have arrived, so that their starts
// are not in it.
func gosched(goroutines, switches int) float64 {
	yields := switches / goroutines
	begun, ended := make([]time.Time, goroutines), make([]time.Time, goroutines)
	var arrived atomic.Int64
	var running sync.WaitGroup
	running.Add(goroutines)
	for i := 0; i < goroutines; i++ {
		go func(i int) {
			defer running.Done()
			arrived.Add(1)
			for arrived.Load() < int64(goroutines) {
				runtime.Gosched()
			}
			begun[i] = time.Now()
			for n := 0; n < yields; n++ {
				runtime.Gosched()
			}
			ended[i] = time.Now()
		}(i)
	}
	running.Wait()
	first, last := begun[0], ended[0]
	for i := range begun {
		if begun[i].Before(first) {
			first = begun[i]
		}
		if ended[i].After(last) {
			last = ended[i]
		}
	}
	return float64(last.Sub(first)) / float64(yields*goroutines)
}

func check(result int) {
	if result != 1 {
		panic("a goroutine's result is lost")
	}
}

// start uses one channel for all, as a program in Go would.
func start(n int) float64 {
	results := make(chan int)
	begun := time.Now()
	for i := 0; i < n; i++ {
		go func() { results <- 1 }()
		check(<-results)
	}
	return each(begun, n)
}

func figures(switches, starts int) map[string]float64 {
	return map[string]float64{
		"switch_alone": gosched(1, switches),
		"switch_100":   gosched(100, switches),
		"start":        start(starts),
	}
}

func main() {
	flag.Parse()
	time.AfterFunc(*bound, func() {
		fmt.Fprintf(os.Stderr, "goroutines: not done after %v, given up\n", *bound)
		os.Exit(1)
	})
	// Of 0 it takes no notice.
	runtime.GOMAXPROCS(*procs)

	// As every contender: each path has been gone before the clock starts.
	figures(*switches/10, *starts/10)
	if err := json.NewEncoder(os.Stdout).Encode(figures(*switches, *starts)); err != nil {
		fmt.Fprintln(os.Stderr, "goroutines:", err)
		os.Exit(1)
	}
}
