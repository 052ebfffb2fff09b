# Bulk transfers through one bottleneck in ns-2: what the other side of the benchmark simulates.
#   ns bulk.tcl FLOWS RATE_BPS RTT_S DURATION_S
# One access link per flow gives each flow its own RTT; the sinks share the bottleneck's far node, so
# that a packet crosses two links each way, the fewest that ns-2 can do it with. Only the headers in
# use are carried (ns-2 copies all others with each packet otherwise), nothing is traced.
# Prints one line of JSON on standard output.

set flow_count  [lindex $argv 0]
set rate_bps    [lindex $argv 1]
set rtt_s       [lindex $argv 2]
set duration_s  [lindex $argv 3]

set wire_bytes 1500
set rtt_spread 0.1
set access_bps 100e9
set sample_interval_s 0.01
set bdp_packets [expr int($rate_bps * $rtt_s / (8.0 * $wire_bytes))]

remove-all-packet-headers
add-packet-header IP TCP Flags

set ns [new Simulator]
$ns use-scheduler Splay

Agent/TCP set packetSize_ [expr $wire_bytes - 40]
Agent/TCP set window_ 1000000
Agent/TCP set maxcwnd_ 0
Agent/TCP set windowInit_ 10
Agent/TCP set timestamps_ true
Agent/TCP set minrto_ 0.2
Agent/TCP set singledup_ 1
Agent/TCPSink set ts_echo_rfc1323_ true
Agent/TCPSink/DelAck set interval_ 40ms
Queue set limit_ 1000000

set near [$ns node]
set far [$ns node]
$ns duplex-link $near $far $rate_bps [expr $rtt_s / 2.0]s DropTail
$ns queue-limit $near $far $bdp_packets

# Base RTTs from rtt to (1 + rtt_spread) × rtt, evenly spaced.
proc access_delay_s {flow} {
    global flow_count rtt_s rtt_spread
    if {$flow_count == 1} { return 0.0 }
    return [expr $rtt_spread * $rtt_s / 2.0 * $flow / ($flow_count - 1.0)]
}

for {set flow 0} {$flow < $flow_count} {incr flow} {
    set node [$ns node]
    $ns duplex-link $node $near $access_bps [access_delay_s $flow]s DropTail
    set senders($flow) [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1/DelAck]
    $ns attach-agent $node $senders($flow)
    $ns attach-agent $far $sink
    $ns connect $senders($flow) $sink
    set application [new Application/FTP]
    $application attach-agent $senders($flow)
    $ns at [expr 0.1 * $flow / $flow_count] "$application start"
}

proc sample {} {
    global ns senders samples flow_count sample_interval_s
    for {set flow 0} {$flow < $flow_count} {incr flow} {
        lappend samples [$senders($flow) set cwnd_]
    }
    $ns at [expr [$ns now] + $sample_interval_s] sample
}

proc finish {} {
    global senders flow_count rate_bps wire_bytes duration_s
    set delivered 0
    for {set flow 0} {$flow < $flow_count} {incr flow} {
        set delivered [expr $delivered + [$senders($flow) set ack_] + 1]
    }
    set utilisation [expr $delivered * 8.0 * $wire_bytes / ($rate_bps * $duration_s)]
    puts "{\"data_packets\": $delivered, \"simulated_s\": $duration_s, \"utilisation\": $utilisation}"
    exit 0
}

if {$duration_s <= 0} {
    puts {{"data_packets": 0, "simulated_s": 0, "utilisation": 0}}
    exit 0
}
$ns at 0.0 sample
$ns at $duration_s finish
$ns run
