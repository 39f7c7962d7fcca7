package crash

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/trimtab-dev/trimtab/operator/operatortest"
	"github.com/trimtab-dev/trimtab/trace"
)

// operatorPackage is the operator as its users run it.
const operatorPackage = "github.com/trimtab-dev/trimtab/samples/nats/cmd/nats-operator"

// lives is one operator that is started again whenever it is killed.
type lives struct {
	t       *testing.T
	binary  operatortest.Binary
	account operatortest.Account
	flags   []string
	trace   string // the file that each life adds its events to

	mu  sync.Mutex
	now *operatortest.Process
}

func startOperator(t *testing.T, binary operatortest.Binary, kubeconfig string, flags ...string) *lives {
	t.Helper()
	l := &lives{t: t, binary: binary, account: operatortest.Account{Kubeconfig: kubeconfig}, trace: filepath.Join(t.TempDir(), "trace")}
	l.flags = append(flags, "--trace", l.trace)
	l.now = binary.Start(t, l.account, l.flags...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("passes of all lives:\n%s", l.passes())
		}
	})
	return l
}

// kill sends SIGKILL, and starts the next life once the process is dead.
func (l *lives) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.Kill()
	l.now = l.binary.Start(l.t, l.account, l.flags...)
}

// alive tells whether the present life goes on. An operator that ends by itself is not
// started again.
func (l *lives) alive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.now.Ended():
		return false
	default:
		return true
	}
}

// passes is what all lives did, for people.
func (l *lives) passes() string {
	f, err := os.Open(l.trace)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	var records []trace.Record
	for r, err := range trace.Decode(f) {
		if err != nil {
			return err.Error()
		}
		records = append(records, r)
	}
	return trace.Transcript(records)
}
