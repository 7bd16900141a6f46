-- wrk sends the next request of a connection as soon as it has an answer. Here it
-- waits for its turn in a timetable that all connections of the thread share:
-- RATE requests a second. A request that is late, because the answer before it was, goes at once.
--
--   RATE=300 wrk -t1 -c256 -d10s --latency -s paced.lua http://127.0.0.1:8080/work
--
-- Prints one line of its own: milliseconds, the number of answers, and answers a
-- second by status.

local ffi = require("ffi")
ffi.cdef [[
  struct twolane_time { long seconds; long nanoseconds; };
  int clock_gettime(int clock, struct twolane_time *now);
]]

local CLOCK_MONOTONIC = 1 -- on Linux
local now = ffi.new("struct twolane_time")

local function milliseconds()
  ffi.C.clock_gettime(CLOCK_MONOTONIC, now)
  return tonumber(now.seconds) * 1e3 + tonumber(now.nanoseconds) / 1e6
end

local threads = {}
local between = 1e3 / tonumber(os.getenv("RATE"))
local next_turn

-- Globals, for `done` to see.
served, shed, failed = 0, 0, 0

function setup(thread)
  table.insert(threads, thread)
end

function delay()
  local at = milliseconds()
  -- No debts: what could not be sent because all connections waited is not made
  -- up for later, in a burst.
  next_turn = math.max(next_turn or at, at - between)
  local wait = next_turn - at
  next_turn = next_turn + between
  return math.max(0, wait)
end

function response(status)
  if status == 200 then
    served = served + 1
  elseif status == 503 then
    shed = shed + 1
  else
    failed = failed + 1
  end
end

function done(summary, latency)
  local function total(name)
    local sum = 0
    for _, thread in ipairs(threads) do
      sum = sum + thread:get(name)
    end
    return sum
  end
  local seconds = summary.duration / 1e6
  io.write(string.format(
    "found p50=%.2f p99=%.2f max=%.2f answers=%d served=%.0f shed=%.0f failed=%.0f\n",
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3,
    summary.requests, total("served") / seconds, total("shed") / seconds,
    total("failed") / seconds))
end
