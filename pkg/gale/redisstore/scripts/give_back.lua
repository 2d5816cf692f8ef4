-- Takes hits or credits off a counter, at least to 0: refunds of strict mode
-- (gale.CountRefund) and returns of leases (gale.LeaseStep.Return).
--
-- KEYS[1]  counter
-- ARGV[1]  hits, 0 to 2^63-1
--
-- Returns {value, micros} as strings: the counter afterwards, and the server's
-- time in microseconds since the Unix epoch. A counter that does not exist
-- stays so, and is '0'. Its time to live does not change.
--
-- Atomic, because two of them at once could otherwise take the counter below
-- 0, and what is below 0 would be admitted beyond the limit.

local time = redis.call('TIME')
local micros = time[1] .. string.format('%06d', time[2])

local value = redis.call('GET', KEYS[1])
if not value then
  return {'0', micros}
end
redis.call('DECRBY', KEYS[1], ARGV[1])
value = redis.call('GET', KEYS[1])
if string.sub(value, 1, 1) == '-' then
  redis.call('INCRBY', KEYS[1], string.sub(value, 2))
  value = '0'
end
return {value, micros}
