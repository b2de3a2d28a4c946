-- Replies to the verbs of a name.
local function invalid(why)
  finish()
  return done(redis.error_reply('INVALID ' .. why))
end

-- refuse says no: how long the holder stays, the counter, the readers, whether
-- nothing of this owner is here, whose label to show, whether that one took the
-- name from this owner by force; and a ticket to queue with, and the rank.
local function refuse(word, mine, left, holder, ticket, rank)
  local readers = vote == 'r' and votes or 0
  local stop, by = match(call('HGET', other('forced'), owner) or '', '^(%d+) (.*)$')
  local forced = stop and tonumber(stop) > now
  local counter = (known or word == 'ready') and number or 0
  mine = mine or waited and line().entry(owner)
  finish()
  return done({word, left or 0, counter, readers, mine and 0 or 1, forced and by or holder or '', forced and 1 or 0,
    ticket or 0, rank or 0})
end

-- granted replies to a writer with a string, which a client reads with fewer
-- allocations than a table: token, how the holder before ended, and the ticket
-- of who asked for its turn.
local function granted(given)
  if waited then line().drop(owner) end -- who has a vote waits for none
  finish()
  if vote == 'w' then
    return done(fmt('%.0f ', given) .. last .. (ticket_given and fmt(' %.0f', ticket_given) or ''))
  end
  return done({'granted', given, last, votes, ticket_given or now})
end
