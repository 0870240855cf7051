-- wrk's script: sends the requests of a file in turn (method, path and body, separated by tabs), with @N@ replaced by a
-- number that never comes twice, and prints what wrk measured as one line of JSON.
local lines, number, at = {}, 0, 0

function init(args)
  for line in io.lines(args[1]) do
    local method, path, body = line:match("([^\t]*)\t([^\t]*)\t(.*)")
    lines[#lines + 1] = {method, path, body}
  end
  number = tonumber(args[2])
  at = number
end

local headers = {["Content-Type"] = "application/vnd.schemaregistry.v1+json", ["Accept"] = "application/json"}

function request()
  at = at + 1
  number = number + 1
  local line = lines[at % #lines + 1]
  local function filled(text) return (text:gsub("@N@", tostring(number))) end
  local body = nil
  if line[3] ~= "" then body = filled(line[3]) end
  return wrk.format(line[1], filled(line[2]), headers, body)
end

function done(summary, latency, requests)
  local wrong = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format('{"requests":%d,"seconds":%f,"p50_ms":%f,"p99_ms":%f,"wrong":%d}\n', summary.requests,
    summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, wrong))
end
