// The goroutines of the bench `streams`: Go's patterns for a stream of items that
// compute. The bench starts it; what is measured stands at the top of
// benches/streams/main.rs. It prints JSON, nanoseconds an item.
package main

import (
	"encoding/json"
	"flag"
	"os"
	"runtime"
	"sync"
	"time"
)

var (
	way    = flag.String("way", "loop", "loop, pipeline, fan or slices")
	short  = flag.Uint64("short", 100, "steps of a short item")
	long   = flag.Uint64("long", 100, "steps of a long item")
	count  = flag.Uint64("count", 100000, "items")
	room   = flag.Int("room", 0, "room of a channel")
	rounds = flag.Int("rounds", 1, "how often; the medians are the bench's")
)

func main() {
	flag.Parse()
	run := map[string]func(uint64) (uint64, time.Duration){
		"loop":     loop,
		"pipeline": func(n uint64) (uint64, time.Duration) { return channels(n, 1) },
		"fan": func(n uint64) (uint64, time.Duration) {
			return channels(n, runtime.GOMAXPROCS(0))
		},
		"slices": slices,
	}[*way]
	// Threads start, and the stacks have their size.
	run(*count/20 + 1)
	found := map[string][]float64{}
	for range make([]struct{}, *rounds) {
		start := time.Now()
		sum, first := run(*count)
		took := time.Since(start)
		if sum != *count*(*count-1)/2 {
			panic("an item was lost, or done twice")
		}
		found["each"] = append(found["each"], float64(took.Nanoseconds())/float64(*count))
		found["first"] = append(found["first"], float64(first.Nanoseconds())/1e3)
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		panic(err)
	}
}

// As in Rust: a chain of arithmetic in which each step needs the one before.
//
//go:noinline
func work(steps uint64) uint64 {
	x := uint64(1)
	for ; steps > 0; steps-- {
		x = (x ^ (x >> 29)) * 0x9e3779b97f4a7c15
	}
	return x
}

var sink uint64

func compute(item uint64) uint64 {
	steps := *short
	if isLong(item) {
		steps = *long
	}
	if work(steps) == 0 {
		sink++
	}
	return item
}

func isLong(item uint64) bool {
	x := item + 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return (x^(x>>31))%20 == 0
}

func loop(n uint64) (sum uint64, first time.Duration) {
	start := time.Now()
	for item := uint64(0); item < n; item++ {
		sum += compute(item)
		if item == 0 {
			first = time.Since(start)
		}
	}
	return
}

// A goroutine for the source, one or more for the stage, and this one consumes.
func channels(n uint64, workers int) (sum uint64, first time.Duration) {
	start := time.Now()
	inputs, outputs := make(chan uint64, *room), make(chan uint64, *room)
	go func() {
		defer close(inputs)
		for item := uint64(0); item < n; item++ {
			inputs <- item
		}
	}()
	var ended sync.WaitGroup
	ended.Add(workers)
	for range make([]struct{}, workers) {
		go func() {
			defer ended.Done()
			for item := range inputs {
				outputs <- compute(item)
			}
		}()
	}
	go func() {
		ended.Wait()
		close(outputs)
	}()
	for output := range outputs {
		if first == 0 {
			first = time.Since(start)
		}
		sum += output
	}
	return
}

// All items are there, and each core has one part of them.
func slices(n uint64) (sum uint64, first time.Duration) {
	all := make([]uint64, n)
	for i := range all {
		all[i] = uint64(i)
	}
	workers := uint64(runtime.GOMAXPROCS(0))
	sums := make(chan uint64, workers)
	for w := uint64(0); w < workers; w++ {
		part := all[n*w/workers : n*(w+1)/workers]
		go func() {
			sum := uint64(0)
			for _, item := range part {
				sum += compute(item)
			}
			sums <- sum
		}()
	}
	for range make([]struct{}, workers) {
		sum += <-sums
	}
	return
}
