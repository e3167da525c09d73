-- For wrk: ask for the paths in a file, in turn, and report in JSON. wrk ... -s poll.lua URL -- FILE
local requests, turn = {}, 0

function init(arguments)
  for path in io.lines(arguments[1]) do
    requests[#requests + 1] = wrk.format("GET", path)
  end
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format('\n{"requests": %d, "seconds": %f, "p50": %f, "p99": %f, "errors": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e6, latency:percentile(99) / 1e6,
    e.connect + e.read + e.write + e.status + e.timeout))
end
