-- Grants credits of one key and window (gale.Store.Lease): gale.Ledger.Lease,
-- in Lua.
--
-- KEYS[1]  counter: the key's name and the window's start in Unix seconds
-- ARGV[1]  window: its start divided by its length
-- ARGV[2]  length of the window in seconds, at least 1
-- ARGV[3]  limit in hits, below 2^53
-- ARGV[4]  want: how many credits at best
-- ARGV[5]  need: how many at least, at most want
-- ARGV[6]  taper, at least 1: a grant is at most max(need, ceil(free/taper))
-- ARGV[7]  grace in seconds: how long the counter outlives its window
--
-- Returns {grant, counter, free, stale, micros} as strings: credits granted, 0
-- when refused; the counter afterwards; what the limit has left afterwards; 1
-- when the window is neither the current nor the next one by the server's
-- time, else 0; the server's time in microseconds since the Unix epoch. A
-- refusal writes nothing.
--
-- Atomic, because two leases that both saw the same rest would both get it.

local window, length = tonumber(ARGV[1]), tonumber(ARGV[2])
local limit, want, need = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local taper, grace = tonumber(ARGV[6]), tonumber(ARGV[7])

local function whole(n)
  return string.format('%.0f', n)
end

local time = redis.call('TIME')
local seconds = tonumber(time[1])
local micros = time[1] .. string.format('%06d', time[2])

local value = redis.call('GET', KEYS[1]) or '0'
local current = math.floor(seconds / length)
if window ~= current and window ~= current + 1 then
  return {'0', value, '0', '1', micros}
end

-- A counter below 0 is not ours; it must not widen the limit. One beyond 2^53
-- is inexact, and beyond every limit.
local counter = math.max(tonumber(value), 0)
local free = math.max(limit - counter, 0)
if free < need or free == 0 or want == 0 then
  return {'0', value, whole(free), '0', micros}
end

local tapered = math.floor((free + taper - 1) / taper)
local grant = math.min(math.max(want, need), free, math.max(need, tapered))
if string.sub(value, 1, 1) == '-' then
  redis.call('INCRBY', KEYS[1], string.sub(value, 2))
end
redis.call('INCRBY', KEYS[1], whole(grant))

-- Longer than the window, so that a clock that steps back meets the counter
-- again; never shorter than it was.
local keep = (window + 1) * length + grace - seconds
if redis.call('TTL', KEYS[1]) < keep then
  redis.call('EXPIRE', KEYS[1], whole(keep))
end
return {whole(grant), whole(counter + grant), whole(free - grant), '0', micros}
