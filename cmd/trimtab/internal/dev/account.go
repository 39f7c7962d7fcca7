package dev

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// account is the identity of the operator: the ServiceAccount of its manifests. So a permission that is missing there is missing
// here, too.
type account struct {
	admin  client.Client
	config *rest.Config
	folder string

	namespace, name string
	timer           <-chan time.Time
}

func (a *account) kubeconfig() string { return filepath.Join(a.folder, "kubeconfig") }
func (a *account) token() string      { return filepath.Join(a.folder, "token") }

// due receives when the token is to be renewed.
func (a *account) due() <-chan time.Time { return a.timer }

// use writes a kubeconfig with a token of a ServiceAccount.
func (a *account) use(ctx context.Context, namespace, name string) error {
	a.namespace, a.name = namespace, name
	if err := a.renew(ctx); err != nil {
		return err
	}
	cfg := rest.AnonymousClientConfig(a.config)
	c := clientcmdapi.NewConfig()
	c.Clusters["dev"] = &clientcmdapi.Cluster{
		Server: cfg.Host, CertificateAuthorityData: cfg.CAData, CertificateAuthority: cfg.CAFile,
		TLSServerName: cfg.ServerName, InsecureSkipTLSVerify: cfg.Insecure,
	}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{TokenFile: a.token()}
	c.Contexts["dev"] = &clientcmdapi.Context{Cluster: "dev", AuthInfo: name, Namespace: namespace}
	c.CurrentContext = "dev"
	return clientcmd.WriteToFile(*c, a.kubeconfig())
}

// renew writes a new token. The operator reads the file again every minute.
func (a *account) renew(ctx context.Context) error {
	token := &authenticationv1.TokenRequest{}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: a.name}}
	a.timer = time.After(time.Minute) // after a failure
	if err := a.admin.SubResource("token").Create(ctx, of, token); err != nil {
		return fmt.Errorf("get a token of ServiceAccount %s/%s: %w", a.namespace, a.name, err)
	}
	a.timer = time.After(time.Until(token.Status.ExpirationTimestamp.Time) / 2)
	next := a.token() + ".new"
	if err := os.WriteFile(next, []byte(token.Status.Token), 0o600); err != nil {
		return err
	}
	return os.Rename(next, a.token())
}
