//! How often a lane's threads are woken: a binary of its own, since what else runs in
//! the process takes turns from the threads whose wakes are counted.

#![cfg(target_os = "linux")]

mod beside_a_join;
mod first_jobs;
mod idle_lane;

#[path = "../support/mod.rs"]
mod support;
#[path = "../support/threads.rs"]
mod threads;
