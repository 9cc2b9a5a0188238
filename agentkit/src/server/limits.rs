use std::{num::NonZeroU32, time::Duration};

/// What one server takes upon itself. The defaults suit an inbox for some hundred people.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The largest body of a request, in bytes: 1 MiB.
    pub body: usize,
    /// How long a request may take to arrive, and how long it may take to be answered: 30
    /// seconds. Streams, once begun, last as long as their client.
    pub time: Duration,
    /// How many requests one caller may make in a second: 50, and 200 at once.
    pub requests_per_second: NonZeroU32,
    /// How many requests one caller may make at once.
    pub burst: NonZeroU32,
    /// How many streams one caller may hold open: 32.
    pub streams_per_caller: usize,
    /// How many streams may be open in all: 4,096.
    pub streams: usize,
    /// How many waiting calls the live list holds at most: 5,000. Lists have no such bound.
    pub live: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const fn at_least_one(number: u32) -> NonZeroU32 {
            match NonZeroU32::new(number) {
                Some(number) => number,
                None => NonZeroU32::MIN,
            }
        }
        Self {
            body: 1 << 20,
            time: Duration::from_secs(30),
            requests_per_second: at_least_one(50),
            burst: at_least_one(200),
            streams_per_caller: 32,
            streams: 4096,
            live: 5000,
        }
    }
}

impl Limits {
    /// Sets the largest body of a request, in bytes.
    pub const fn body(mut self, bytes: usize) -> Self {
        self.body = bytes;
        self
    }

    /// Sets how long a request may take.
    pub const fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Sets how many requests one caller may make in a second, and at once.
    pub const fn rate(mut self, per_second: NonZeroU32, burst: NonZeroU32) -> Self {
        self.requests_per_second = per_second;
        self.burst = burst;
        self
    }

    /// Sets how many streams may be open, for one caller and in all.
    pub const fn streams(mut self, per_caller: usize, in_all: usize) -> Self {
        self.streams_per_caller = per_caller;
        self.streams = in_all;
        self
    }
}
