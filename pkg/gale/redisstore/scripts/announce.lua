-- Says that a replica lives, and counts those that do (gale.Store.Announce).
--
-- KEYS[1]  sorted set of replicas; the score is until when each is believed to
--          live, in milliseconds of the server's clock
-- ARGV[1]  the replica's id
-- ARGV[2]  for how long, in milliseconds; 0 or less withdraws
--
-- Returns the number of live replicas.
--
-- Atomic, so that no replica counts one that it has just seen expire; one
-- round trip, and no clock but the server's.

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local ttl = tonumber(ARGV[2])

redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
if ttl > 0 then
  redis.call('ZADD', KEYS[1], string.format('%.0f', now + ttl), ARGV[1])
  if redis.call('PTTL', KEYS[1]) < ttl then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
else
  redis.call('ZREM', KEYS[1], ARGV[1])
end
return redis.call('ZCARD', KEYS[1])
