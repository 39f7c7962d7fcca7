package webhook_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trimtab-dev/trimtab/webhook"
)

// ports sets the port of a ConfigMap, and validates it.
type ports struct{}

func (ports) Default(_ context.Context, obj *corev1.ConfigMap) error {
	if obj.Data["port"] == "" {
		obj.Data = map[string]string{"port": "8080"}
	}
	return nil
}

func (ports) Validate(_ context.Context, old, obj *corev1.ConfigMap) (admission.Warnings, error) {
	if obj.Data["port"] == "0" {
		return nil, errors.New("data.port is 0; choose a port, or leave it out for 8080")
	}
	if old != nil && old.Data["port"] != obj.Data["port"] {
		return admission.Warnings{"clients of the old port lose their connections"}, nil
	}
	return nil, nil
}

// Webhooks for one kind, for operator.Options.Webhooks.
func Example() {
	all := []*webhook.Webhook{webhook.New(webhook.Options[*corev1.ConfigMap]{Defaulter: ports{}, Validator: ports{}})}
	fmt.Println(len(all))
	// Output: 1
}
