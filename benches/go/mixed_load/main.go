// The goroutines of the bench `mixed_load`: a goroutine for each job, which arrive at the times
// that the bench has written to a file.
//
// The bench starts it; benches/mixed_load/main.rs says what is counted. It prints the latency of
// each job as JSON: nanoseconds from the time at which it is meant to arrive to its end.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

var (
	schedule = flag.String("schedule", "", "a file with a line for each job: nanoseconds from the start, nanoseconds of work")
	bound    = flag.Duration("bound", time.Minute, "give up after that")
)

type arrival struct {
	at, work time.Duration
}

// What keeps a result from being optimized away.
var sink atomic.Uint64

// compute does the steps of benches/src/tail/work.rs.
//
//go:noinline
func compute(steps uint64) {
	x := uint64(1)
	for i := uint64(0); i < steps; i++ {
		x = (x ^ (x >> 29)) * 0x9e3779b97f4a7c15
	}
	sink.Add(x)
}

func timed(steps uint64) time.Duration {
	begun := time.Now()
	compute(steps)
	return time.Since(begun)
}

// calibrated tells how many steps take a millisecond on a core of their own: by the best of many.
func calibrated() float64 {
	steps := uint64(1 << 10)
	for timed(steps) < 100*time.Microsecond {
		steps *= 2
	}
	best := time.Hour
	for i := 0; i < 500; i++ {
		best = min(best, timed(steps))
	}
	return float64(steps) * float64(time.Millisecond) / float64(best)
}

func read() []arrival {
	file, err := os.Open(*schedule)
	if err != nil {
		fail(err)
	}
	defer file.Close()
	var found []arrival
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var one arrival
		if _, err := fmt.Sscan(lines.Text(), &one.at, &one.work); err != nil {
			fail(err)
		}
		found = append(found, one)
	}
	return found
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, "goroutines:", why)
	os.Exit(1)
}

func main() {
	flag.Parse()
	time.AfterFunc(*bound, func() { fail(fmt.Sprintf("not done after %v, given up", *bound)) })
	arrivals, stepsPerMs := read(), calibrated()
	latencies := make([]time.Duration, len(arrivals))
	var running sync.WaitGroup
	running.Add(len(arrivals))
	start := time.Now()
	for i := range arrivals {
		due := start.Add(arrivals[i].at)
		steps := uint64(stepsPerMs * float64(arrivals[i].work) / float64(time.Millisecond))
		time.Sleep(time.Until(due))
		go func(latency *time.Duration) {
			defer running.Done()
			compute(steps)
			*latency = time.Since(due)
		}(&latencies[i])
	}
	running.Wait()
	if err := json.NewEncoder(os.Stdout).Encode(latencies); err != nil {
		fail(err)
	}
}
