package nats_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// What NATS does with each change of each setting of a consumer. A server that does
// otherwise, or has a setting that is not here, fails.
func TestConsumerChanges(t *testing.T) {
	_, client := startNATS(t, natsserver.Options{})
	streams(client).create(t, stream("events", v1alpha1.StreamSpec{Subjects: []string{"ev.>"}}))
	b := consumers(client)
	seen := map[string]bool{}
	tested := map[string]bool{}

	for name, tc := range consumerChanges() {
		field, _, _ := strings.Cut(name, ",")
		tested[field] = true
		t.Run(name, func(t *testing.T) {
			id := strings.NewReplacer(" ", "_", ",", "", ".", "_").Replace(name)
			obj := consumer(id, "events", tc.base)
			b.create(t, obj)
			b.converge(t, obj)
			before := b.observe(t, obj).Have

			obj.Spec = tc.next
			obj.Spec.Stream, obj.Spec.Recreate = "events", v1alpha1.RecreateAllowed
			wantChanges(t, tc, "spec."+field, b.compare(obj, before))
			err := b.tryUpdate(t, obj)
			changed(seen, leaves(t, before.Reported), leaves(t, b.observe(t, obj).Have.Reported))
			wantEffect(t, tc, err, b.changes(t, obj))

			obj.Spec.Recreate = ""
			if refused := b.compare(obj, before).With(external.Unsupported); tc.effect == external.Recreate && len(refused) == 0 {
				t.Errorf("%s: re-creation is not refused by default", tc.why)
			}
			if tc.effect == external.Recreate { // what the new thing would be
				obj.Spec.Name = obj.Name + "_anew"
				b.create(t, obj)
				b.converge(t, obj)
				changed(seen, leaves(t, before.Reported), leaves(t, b.observe(t, obj).Have.Reported))
				b.remove(t, obj)
				obj.Spec.Name = ""
			}
			b.remove(t, obj)
		})
	}

	notSettings := []string{"name", "stream", "streamRef", "recreate"}
	for _, f := range specFields(reflect.TypeFor[v1alpha1.ConsumerSpec]()) {
		if !tested[f] && !slices.Contains(notSettings, f) {
			t.Errorf("no change of spec.%s is tested", f)
		}
	}
	delete(seen, "durable_name") // it differs in what is created anew
	wantAllSettings(t, reflect.TypeFor[server.ConsumerConfig](), seen, map[string]string{
		"name":         "it is the consumer's identity",
		"durable_name": "it is the name: a consumer that an operator keeps is durable",
		"num_replicas": "it takes a cluster: TestReplicasInACluster",
		"direct":       "the server keeps it for mirrors and sources of its own",
		"sourcing":     "the server keeps it for mirrors and sources of its own",
	})
}

func consumerChanges() map[string]change[v1alpha1.ConsumerSpec] {
	type spec = v1alpha1.ConsumerSpec
	on, off := new(true), new(false)
	hour, minute, second := lasting(time.Hour), lasting(time.Minute), lasting(time.Second)
	past := at(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	later := at(time.Now().Add(time.Hour).Truncate(time.Second))
	push := new("deliver.here")
	waits := func(d ...time.Duration) []v1alpha1.Duration {
		out := []v1alpha1.Duration{}
		for _, x := range d {
			out = append(out, *lasting(x))
		}
		return out
	}
	pinned := spec{PriorityPolicy: new("pinnedClient"), PriorityGroups: []string{"a"}}

	return map[string]change[spec]{
		"description":                   {why: "free text", base: spec{Description: new("old")}, next: spec{Description: new("new")}},
		"deliverPolicy":                 {why: "where it starts is settled", base: spec{DeliverPolicy: new("all")}, next: spec{DeliverPolicy: new("new")}, effect: external.Recreate},
		"deliverPolicy, last":           {why: "where it starts is settled", base: spec{DeliverPolicy: new("last")}, next: spec{DeliverPolicy: new("lastPerSubject"), FilterSubject: new("ev.a")}, paths: []string{"spec.deliverPolicy", "spec.filterSubject"}, effect: external.Recreate},
		"optStartSeq":                   {why: "where it starts is settled", base: spec{DeliverPolicy: new("byStartSequence"), OptStartSeq: new(int64(1))}, next: spec{DeliverPolicy: new("byStartSequence"), OptStartSeq: new(int64(2))}, effect: external.Recreate},
		"optStartTime":                  {why: "where it starts is settled", base: spec{DeliverPolicy: new("byStartTime"), OptStartTime: past}, next: spec{DeliverPolicy: new("byStartTime"), OptStartTime: later}, effect: external.Recreate},
		"ackPolicy":                     {why: "what is out is counted by it", base: spec{AckPolicy: new("explicit")}, next: spec{AckPolicy: new("all")}, effect: external.Recreate},
		"ackPolicy, none":               {why: "what is out is counted by it", base: spec{AckPolicy: new("explicit")}, next: spec{AckPolicy: new("none")}, effect: external.Recreate},
		"ackPolicy, flow control":       {why: "what is out is counted by it", base: spec{DeliverSubject: push, FlowControl: on, HeartbeatInterval: second}, next: spec{AckPolicy: new("flowControl"), DeliverSubject: new("deliver.fc"), FlowControl: on, HeartbeatInterval: second, MaxAckPending: new(10)}, paths: []string{"spec.ackPolicy", "spec.deliverSubject", "spec.maxAckPending"}, effect: external.Recreate},
		"ackWait":                       {why: "for the next delivery", base: spec{AckWait: minute}, next: spec{AckWait: hour}},
		"ackWait, behind a backoff":     {why: "NATS takes the first backoff", base: spec{Backoff: waits(time.Second), MaxDeliver: new(3)}, next: spec{AckWait: hour}, effect: external.Ignored},
		"maxDeliver":                    {why: "for the next delivery", base: spec{MaxDeliver: new(3)}, next: spec{MaxDeliver: new(5)}},
		"maxDeliver, any":               {why: "0 is NATS's -1", base: spec{MaxDeliver: new(3)}, next: spec{MaxDeliver: new(0)}},
		"backoff":                       {why: "for the next delivery", base: spec{MaxDeliver: new(5), Backoff: waits(time.Second, time.Minute)}, next: spec{Backoff: waits(2*time.Second, time.Minute, time.Hour)}},
		"backoff, none":                 {why: "an empty value removes", base: spec{MaxDeliver: new(5), Backoff: waits(time.Second, time.Minute)}, next: spec{Backoff: waits()}},
		"filterSubject":                 {why: "for what comes next", base: spec{FilterSubject: new("ev.a")}, next: spec{FilterSubject: new("ev.b.>")}},
		"filterSubjects, none of one":   {why: "an empty list removes", base: spec{FilterSubject: new("ev.a")}, next: spec{FilterSubjects: []string{}}},
		"filterSubjects":                {why: "for what comes next", base: spec{FilterSubjects: []string{"ev.a", "ev.b"}}, next: spec{FilterSubjects: []string{"ev.c", "ev.b"}}},
		"filterSubjects, one":           {why: "one filter is a filter", base: spec{FilterSubjects: []string{"ev.a", "ev.b"}}, next: spec{FilterSubjects: []string{"ev.c"}}},
		"filterSubjects, none":          {why: "an empty value removes", base: spec{FilterSubjects: []string{"ev.a", "ev.b"}}, next: spec{FilterSubjects: []string{}}},
		"replayPolicy":                  {why: "its rhythm is settled", base: spec{ReplayPolicy: new("instant")}, next: spec{ReplayPolicy: new("original")}, effect: external.Recreate},
		"sampleFreq":                    {why: "for the next acknowledgement", base: spec{SampleFreq: new("10%")}, next: spec{SampleFreq: new("30%")}},
		"sampleFreq, none":              {why: "0% samples nothing", base: spec{SampleFreq: new("10%")}, next: spec{SampleFreq: new("0%")}},
		"maxWaiting":                    {why: "the queue has its size", base: spec{MaxWaiting: new(10)}, next: spec{MaxWaiting: new(20)}, effect: external.Recreate},
		"maxAckPending":                 {why: "a limit", base: spec{MaxAckPending: new(10)}, next: spec{MaxAckPending: new(20)}},
		"maxAckPending, any":            {why: "a limit", base: spec{MaxAckPending: new(10)}, next: spec{MaxAckPending: new(-1)}},
		"headersOnly":                   {why: "for the next delivery", base: spec{HeadersOnly: off}, next: spec{HeadersOnly: on}},
		"headersOnly, off":              {why: "for the next delivery", base: spec{HeadersOnly: on}, next: spec{HeadersOnly: off}},
		"maxRequestBatch":               {why: "a limit", base: spec{MaxRequestBatch: new(10)}, next: spec{MaxRequestBatch: new(20)}},
		"maxRequestExpires":             {why: "a limit", base: spec{MaxRequestExpires: minute}, next: spec{MaxRequestExpires: hour}},
		"maxRequestMaxBytes":            {why: "a limit", base: spec{MaxRequestMaxBytes: new(1024)}, next: spec{MaxRequestMaxBytes: new(2048)}},
		"deliverSubject":                {why: "delivers elsewhere", base: spec{DeliverSubject: push}, next: spec{DeliverSubject: new("deliver.there")}},
		"deliverSubject, of a pull one": {why: "pull and push are two kinds", base: spec{}, next: spec{DeliverSubject: push}, effect: external.Recreate},
		"deliverGroup":                  {why: "for the next delivery", base: spec{DeliverSubject: push, DeliverGroup: new("a")}, next: spec{DeliverSubject: push, DeliverGroup: new("b")}},
		"flowControl":                   {why: "the two ends agreed on it", base: spec{DeliverSubject: push, HeartbeatInterval: second, FlowControl: off}, next: spec{DeliverSubject: push, HeartbeatInterval: second, FlowControl: on}, effect: external.Recreate},
		"heartbeatInterval":             {why: "the two ends agreed on it", base: spec{DeliverSubject: push, HeartbeatInterval: second}, next: spec{DeliverSubject: push, HeartbeatInterval: minute}, effect: external.Recreate},
		"rateLimitBps":                  {why: "for the next delivery", base: spec{DeliverSubject: push, RateLimitBps: new(int64(100000))}, next: spec{DeliverSubject: push, RateLimitBps: new(int64(200000))}},
		"inactiveThreshold":             {why: "a limit", base: spec{InactiveThreshold: minute}, next: spec{InactiveThreshold: hour}},
		"inactiveThreshold, none":       {why: "0s means none", base: spec{InactiveThreshold: minute}, next: spec{InactiveThreshold: lasting(0)}},
		"replicas":                      {why: "this server is alone; a cluster does it in place", base: spec{Replicas: new(1)}, next: spec{Replicas: new(3)}, silent: true},
		"memStorage":                    {why: "where it keeps its state is settled", base: spec{}, next: spec{MemStorage: on}, effect: external.Recreate},
		"pauseUntil":                    {why: "it sleeps", base: spec{}, next: spec{PauseUntil: later}},
		"pauseUntil, past":              {why: "it wakes up", base: spec{PauseUntil: later}, next: spec{PauseUntil: past}},
		"priorityPolicy":                {why: "for the next request", base: pinned, next: spec{PriorityPolicy: new("overflow"), PriorityGroups: []string{"a"}}},
		"priorityPolicy, prioritized":   {why: "for the next request", base: pinned, next: spec{PriorityPolicy: new("prioritized"), PriorityGroups: []string{"a"}}},
		"priorityGroups":                {why: "for the next request", base: pinned, next: spec{PriorityPolicy: new("pinnedClient"), PriorityGroups: []string{"b"}}},
		"pinnedTtl":                     {why: "for the next request", base: spec{PriorityPolicy: new("pinnedClient"), PriorityGroups: []string{"a"}, PinnedTTL: minute}, next: spec{PriorityPolicy: new("pinnedClient"), PriorityGroups: []string{"a"}, PinnedTTL: hour}},
		"priorityPolicy, none":          {why: "it becomes an ordinary consumer", base: pinned, next: spec{PriorityPolicy: new("none")}},
		"metadata":                      {why: "labels", base: spec{Metadata: map[string]string{"team": "a", "gone": "x"}}, next: spec{Metadata: map[string]string{"team": "b", "more": "y"}}},
	}
}
