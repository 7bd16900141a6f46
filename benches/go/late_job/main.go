// The goroutines of the bench `late_job`: N long jobs of naive recursive
// Fibonacci, all started at once, and small ones that arrive midway, one by
// one, from a goroutine that sleeps until the time of each.
//
// The bench starts it; benches/late_job/main.rs says what is counted. It prints
// its stamps as JSON: nanoseconds since the start.
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
	k         = flag.Int("k", 30, "a long job is fib(k)")
	jobs      = flag.Int("jobs", 100, "how many long jobs")
	lateK     = flag.Int("late-k", 15, "a late job is fib(late-k)")
	lateJobs  = flag.Int("late-jobs", 40, "how many late jobs")
	lateEvery = flag.Duration("late-every", 5*time.Millisecond, "from one arrival to the next")
	lateFrom  = flag.Float64("late-from", 0.25, "the first arrival, as a part of the expected total")
	bound     = flag.Duration("bound", time.Minute, "give up after that")
)

type late struct {
	Intended time.Duration `json:"intended_ns"`
	Ended    time.Duration `json:"ended_ns"`
}

type outcome struct {
	LongEnds []time.Duration `json:"long_ends_ns"`
	Late     []late          `json:"late"`
}

// Without inlining, so that its cost per call is that of a call, as in Rust.
//
//go:noinline
func fib(n int) uint64 {
	if n < 2 {
		return uint64(n)
	}
	return fib(n-1) + fib(n-2)
}

// What keeps a result from being optimized away.
var sink atomic.Uint64

func compute(n int) {
	sink.Add(fib(n))
}

// expected tells how long the long jobs should take, from one on each core.
func expected() time.Duration {
	cores := runtime.GOMAXPROCS(0)
	took := make([]time.Duration, cores)
	var running sync.WaitGroup
	running.Add(cores)
	for core := range took {
		go func(took *time.Duration) {
			defer running.Done()
			begun := time.Now()
			compute(*k)
			*took = time.Since(begun)
		}(&took[core])
	}
	running.Wait()
	var sum time.Duration
	for _, one := range took {
		sum += one
	}
	return sum * time.Duration(*jobs) / time.Duration(cores*cores)
}

// arrivals is the source of late jobs: it sleeps until the intended time of
// each, and doesn't wait for the one before.
func arrivals(start, first time.Time, found []late) {
	var answered sync.WaitGroup
	answered.Add(len(found))
	for i := range found {
		intended := first.Add(time.Duration(i) * *lateEvery)
		time.Sleep(time.Until(intended))
		go func(one *late) {
			defer answered.Done()
			compute(*lateK)
			ended := time.Now()
			*one = late{intended.Sub(start), ended.Sub(start)}
		}(&found[i])
	}
	answered.Wait()
}

func main() {
	flag.Parse()
	time.AfterFunc(*bound, func() {
		fmt.Fprintf(os.Stderr, "goroutines: not done after %v, given up\n", *bound)
		os.Exit(1)
	})

	found := outcome{make([]time.Duration, *jobs), make([]late, *lateJobs)}

	// As every contender: the path of the small jobs has been gone once
	// before the clock starts.
	total := expected()
	began := make(chan time.Time)
	primed, done := make(chan struct{}), make(chan struct{})
	go func() {
		arrivals(time.Now(), time.Now(), make([]late, 1))
		close(primed)
		start := <-began
		first := start.Add(time.Duration(*lateFrom * float64(total)))
		arrivals(start, first, found.Late)
		close(done)
	}()
	<-primed

	var running sync.WaitGroup
	running.Add(*jobs)
	start := time.Now()
	began <- start
	for i := range found.LongEnds {
		go func(end *time.Duration) {
			defer running.Done()
			compute(*k)
			*end = time.Since(start)
		}(&found.LongEnds[i])
	}
	running.Wait()
	<-done

	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		fmt.Fprintln(os.Stderr, "goroutines:", err)
		os.Exit(1)
	}
}
