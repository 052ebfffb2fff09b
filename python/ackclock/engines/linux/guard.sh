#!/bin/sh
# Runs a guest, and ends all of its processes with it or with us. A guest leads a session of its own.
#   guard.sh KERNEL ARGUMENT…      standard input: a pipe that nobody writes to; when it closes, our parent is gone
exec 3<&0
"$@" </dev/null 3<&- &
guest=$!
{
    read -r _ <&3
    kill -KILL "-$guest" "$guest"
} >/dev/null 2>&1 &
watch=$!
wait "$guest"
status=$?
kill -KILL "-$guest" "$watch" 2>/dev/null
exit "$status"
