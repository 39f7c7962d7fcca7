package postgres

import (
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/samples/postgres/api/v1alpha1"
)

// The server gets no password that it could log. That it accepts the verifier is shown by TestOperator, which logs in.
func TestVerifier(t *testing.T) {
	t.Parallel()
	with, err := settings(&v1alpha1.Role{}, map[string]string{"password": "hunter2-hunter2"})
	if err != nil || !strings.Contains(with, "PASSWORD 'SCRAM-SHA-256$4096:") || strings.Contains(with, "hunter2") {
		t.Errorf("%s, %v", with, err)
	}
}
