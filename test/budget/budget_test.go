package budget

import "testing"

// TestBudget runs on one control plane, one part after the other, so that whatever the
// operator's account does belongs to the part that runs. Costs of a life are
// asserted to the request: one less is a reason to lower the figure.
func TestBudget(t *testing.T) {
	b := newBench(t)
	t.Run("the life of a Stream", b.streamLife)
	t.Run("the life of a Consumer", b.consumerLife)
	t.Run("the life of a Consumer that has to wait", b.waitingConsumerLife)
	t.Run("a Consumer whose Stream changes", b.updateBelow)
	t.Run("a hundred idle Streams", b.idle)
	t.Run("a restart with a hundred Streams", b.restart)
}
