package testenv_test

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trimtab-dev/trimtab/testenv"
)

func TestKubeconfigIsTheSameUser(t *testing.T) {
	admin := testenv.Start(t)
	tests := map[string]struct {
		why string
		cfg *rest.Config
	}{
		"administrator": {"trimtab's own server knows them by a certificate or a token", admin},
		"user":          {"a ServiceAccount has a token", testenv.User(t, admin, canWriteConfigMaps)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := clientcmd.BuildConfigFromFlags("", testenv.Kubeconfig(t, tt.cfg))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := whoAmI(t, got), whoAmI(t, tt.cfg); got != want || got == "" {
				t.Errorf("the file's user is %q, want %q; %s", got, want, tt.why)
			}
		})
	}
}

func whoAmI(t *testing.T, cfg *rest.Config) string {
	t.Helper()
	review := &authenticationv1.SelfSubjectReview{}
	if err := testenv.Client(t, cfg).Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo.Username
}
