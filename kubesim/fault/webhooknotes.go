package fault

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// ofWebhooks are about which webhooks were called, and for what.
func ofWebhooks(r *history.Run) (all []string) {
	var called, implied, idle, missing []string
	for _, h := range r.Webhooks {
		if h.Calls+h.Unreached > 0 {
			called = append(called, fmt.Sprintf("%s %s", h.Path, times(h)))
		}
		if h.Implied != "" {
			implied = append(implied, fmt.Sprintf("%s of %s", h.Path, h.Implied))
		}
		if h.Unregistered {
			missing = append(missing, h.Path)
		}
	}
	for _, path := range r.Processes[0].Webhooks {
		if !slices.ContainsFunc(r.Webhooks, func(h history.Webhook) bool { return h.Path == path && h.Calls > 0 }) {
			idle = append(idle, path)
		}
	}
	if len(called) > 0 {
		all = append(all, "the operator's webhooks were called: "+strings.Join(called, ", "))
	}
	if len(implied) > 0 {
		all = append(all, fmt.Sprintf("no webhook configuration is among the operator's manifests, so its webhooks are called for CREATE and UPDATE of what their paths say (%s); give Operator.Webhooks the folder with the configurations", strings.Join(implied, ", ")))
	}
	if len(idle) > 0 {
		all = append(all, fmt.Sprintf("the operator registered webhooks that were never called (%s): no request matched their configuration, or none names them; steps create what they would let through, with the defaults that they would set", strings.Join(idle, ", ")))
	}
	if len(missing) > 0 {
		all = append(all, fmt.Sprintf("webhook configurations name paths that the operator did not register (%s), so what they are for was let through", strings.Join(missing, ", ")))
	}
	return all
}

// times says how often a webhook was called: "3 times, of which it denied 1".
func times(h history.Webhook) string {
	text := fmt.Sprintf("%d times", h.Calls)
	if h.Calls == 1 {
		text = "once"
	}
	if h.Denied > 0 {
		text += fmt.Sprintf(", of which it denied %d", h.Denied)
	}
	if h.Unreached > 0 {
		text += fmt.Sprintf(", and %d times in vain, while no process of the operator served it", h.Unreached)
	}
	return text
}
