package budget

import "testing"

// lifeOfOne is what the life of a thing costs: created, Ready, one field updated, deleted.
// The writes are the finalizer with the record, the status twice, and the finalizer's end. The
// looks are one before and one after each of the three changes.
func lifeOfOne() sum { return sum{Writes: 4, Reads: 0, Changes: 3, Looks: 6} }

func (b *bench) streamLife(t *testing.T) {
	nt := b.newNATSTest(t)
	from := nt.mark()
	s := nt.stream("orders")
	nt.create(s)
	ready(nt, s)
	nt.merge(s, `{"spec":{"maxMsgs":1000}}`)
	ready(nt, s)
	nt.delete(s)
	nt.operator.Stop() // what it was about to do is done then
	all := nt.cost(from, nt.mark())
	all.of("streams", "orders").is(t, "the life of a Stream", lifeOfOne())
	want := lifeOfOne()
	want.Reads++ // once in a process: which cluster this is
	all.is(t, "all that the operator did", want)
}

// consumerLife is that of a Consumer whose Stream is Ready already.
func (b *bench) consumerLife(t *testing.T) {
	nt := b.newNATSTest(t)
	s, c := nt.stream("orders"), nt.consumer("billing", "orders")
	nt.create(s)
	ready(nt, s)
	nt.listen(settling) // the event of the Stream's status, if it is late, would bring another pass over the Consumer
	from := nt.mark()
	nt.create(c)
	ready(nt, c)
	nt.merge(c, `{"spec":{"maxDeliver":7}}`)
	ready(nt, c)
	nt.delete(c)
	nt.delete(s)
	nt.operator.Stop()
	nt.cost(from, nt.mark()).of("consumers", "billing").is(t, "the life of a Consumer", lifeOfOne())
}

// waitingConsumerLife is that of a Consumer which is there before its Stream. It says
// meanwhile what it waits for: that the Stream does not exist, and then that it is not Ready.
func (b *bench) waitingConsumerLife(t *testing.T) {
	nt := b.newNATSTest(t)
	s, c := nt.stream("orders"), nt.consumer("billing", "orders")
	from := nt.mark()
	nt.create(c)
	nt.waits(c)
	nt.create(s)
	ready(nt, s)
	ready(nt, c)
	nt.merge(c, `{"spec":{"maxDeliver":7}}`)
	ready(nt, c)
	nt.delete(c)
	nt.delete(s)
	nt.operator.Stop()
	want := lifeOfOne()
	want.Writes += 2
	nt.cost(from, nt.mark()).of("consumers", "billing").atMost(t, "the life of a Consumer that has to wait", want)
}

// updateBelow: while a Stream is being changed it is not Ready, which its Consumer says, once
// when that begins and once when it is over, if it comes to see both.
func (b *bench) updateBelow(t *testing.T) {
	nt := b.newNATSTest(t)
	s, c := nt.stream("orders"), nt.consumer("billing", "orders")
	nt.create(s, c)
	ready(nt, s)
	ready(nt, c)
	nt.listen(settling)
	from := nt.mark()
	nt.merge(s, `{"spec":{"maxMsgs":1000}}`)
	ready(nt, s)
	nt.listen(settling)
	to := nt.mark()
	nt.delete(c)
	nt.delete(s)
	nt.operator.Stop()
	nt.cost(from, to).of("consumers", "billing").atMost(t, "a Consumer whose Stream changes", sum{Writes: 2, Looks: 2})
}
