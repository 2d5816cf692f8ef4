-- Takes all steps of a request or none (gale.Store.CountAll).
--
-- KEYS[i]      counter of step i; several steps may name one counter
-- ARGV[4i-3]   hits to add, 0 to 2^63-1
-- ARGV[4i-2]   limit in hits, below 2^53
-- ARGV[4i-1]   1 if the step refuses none of the others (a bystander), else 0
-- ARGV[4i]     time to live in seconds, at least 1
--
-- Returns {outcome, before 1, before 2, ...}: outcome is 1 when all steps were
-- taken, 0 when none was because one exceeds its limit, -1 when none was
-- because a bystander would overflow; before i is the value of counter i
-- before the script, as a string, for Lua's numbers are exact below 2^53
-- only. A sum beyond that is still greater than any limit.
--
-- Atomic, because between looking and adding another request could take what
-- is left, and then neither all nor none of this one would be taken.

-- Near 2^63 sums are inexact by up to 2^12, so the end is taken to be there.
local highest = 9223372036854767616 -- 2^63 - 2^13

local before, value, sum = {}, {}, {}
local fits, overflow = true, false
for i, key in ipairs(KEYS) do
  local hits, limit, bystander = ARGV[4 * i - 3], ARGV[4 * i - 2], ARGV[4 * i - 1]
  if not value[key] then
    value[key] = redis.call('GET', key) or '0'
    sum[key] = tonumber(value[key])
  end
  sum[key] = sum[key] + tonumber(hits)
  before[i] = value[key]
  if bystander == '0' and sum[key] > tonumber(limit) then
    fits = false
  end
  if sum[key] > highest then
    overflow = true
  end
end

local outcome = 1
if not fits then
  outcome = 0
elseif overflow then
  outcome = -1
else
  for i, key in ipairs(KEYS) do
    redis.call('INCRBY', key, ARGV[4 * i - 3])
    redis.call('EXPIRE', key, ARGV[4 * i])
  end
end
table.insert(before, 1, outcome)
return before
