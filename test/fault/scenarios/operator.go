package scenarios

import (
	"slices"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
)

// simulated is an operator whose users may ask for any adoption. No story is long enough for it to read
// a Probe past a cache that is seconds behind.
func simulated(options func(*fault.Env) operator.Options, flags ...string) fault.Operator {
	o := fault.Operator(operatortest.Simulated(options, append(flags, "--adoption-limit=always")...))
	o.Justified = append(o.Justified, "get probes.probe.trimtab.dev")
	o.Justified, o.Ignored = slices.Clip(o.Justified), slices.Clip(o.Ignored) // scenarios may share them and append
	return o
}
