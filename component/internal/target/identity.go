package target

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
)

// Identity says to which API server requests go, and as whom.
type Identity struct {
	// Kubeconfig is that of the API server. Nil means the manager's own.
	Kubeconfig []byte
	// User is impersonated. Empty means that the user of the kubeconfig, or of the manager, stays.
	User string
	// Groups are impersonated. None means that they are those of the user.
	Groups []string
}

// local reports whether requests go out as the manager's own.
func (i Identity) local() bool { return i.Kubeconfig == nil && i.User == "" && len(i.Groups) == 0 }

// key identifies the identity.
func (i Identity) key() string {
	groups := slices.Compact(slices.Sorted(slices.Values(i.Groups)))
	text, err := json.Marshal([]any{i.Kubeconfig != nil, i.Kubeconfig, i.User, groups})
	if err != nil {
		panic("target: strings are not JSON: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// config returns the client configuration of the identity. Local is the manager's.
func (i Identity) config(local *rest.Config, allow Allow) (*rest.Config, error) {
	config := rest.CopyConfig(local)
	if i.Kubeconfig != nil {
		var err error
		if config, err = parse(i.Kubeconfig, allow); err != nil {
			return nil, err
		}
		config.QPS, config.Burst, config.UserAgent = local.QPS, local.Burst, local.UserAgent
		config.WarningHandler, config.WarningHandlerWithContext = local.WarningHandler, local.WarningHandlerWithContext
	}
	if i.User == "" && len(i.Groups) == 0 {
		return config, nil
	}
	if config.Impersonate.UserName != "" {
		return nil, errors.New("the kubeconfig impersonates a user itself and cannot impersonate another; remove as from it")
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: i.User, Groups: slices.Clone(i.Groups)}
	return config, nil
}

// whoami returns the name of the user of a client configuration. Kubernetes does not impersonate groups
// without a user, so that groups alone mean this one.
func whoami(ctx context.Context, config *rest.Config, client *http.Client) (string, error) {
	body, err := json.Marshal(authenticationv1.SelfSubjectReview{})
	if err != nil {
		return "", err
	}
	c, err := restClient(config, client)
	if err != nil {
		return "", err
	}
	answer, err := c.Post().AbsPath("/apis/authentication.k8s.io/v1/selfsubjectreviews").Body(body).Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("ask whose groups are impersonated: %w", err)
	}
	var review authenticationv1.SelfSubjectReview
	if err := json.Unmarshal(answer, &review); err != nil {
		return "", fmt.Errorf("ask whose groups are impersonated: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}
