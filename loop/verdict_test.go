package loop

import (
	"errors"
	"testing"
)

func TestFromError(t *testing.T) {
	if o := FromError(nil); o.kind != kindDone || o.failed() {
		t.Errorf("no error became %s", o.kind)
	}
	broken := errors.New("the pump is broken")
	if o := FromError(broken); o.kind != kindFail || !errors.Is(o.err, broken) {
		t.Errorf("an error became %s with %v", o.kind, o.err)
	}
}
