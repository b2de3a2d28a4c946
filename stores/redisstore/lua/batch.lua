-- Batch: usual calls that leave together. KEYS are the record's and those of each
-- call; ARGV[1] has the letter of each call's verb, and behind it stand the calls,
-- packed. Replies what each is told, a line each. A line is empty where nothing
-- was done: the call is not usual, or its name was changed by one before it. So
-- nobody looks at a vote again that a release gave back, and all of those can be
-- deleted last, by one command.
if not steady then return '' end
local letters, replies, changed, gone = ARGV[1], {}, {}, {}
local k = 2
for i = 1, #letters do
  local verb, vote = sub(letters, i, i), KEYS[k]
  local reply = not changed[vote] and usual[verb](k, ARGV[i + 1])
  if reply then changed[vote] = true end
  if reply and verb == 'r' then gone[#gone + 1] = vote end
  replies[i] = reply or ''
  k = k + (verb == 'a' and 3 or 2)
end
if gone[1] then call('DEL', unpack(gone)) end
return table.concat(replies, '\n')
