package testenv

import (
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig writes a kubeconfig with the server and the credentials of cfg and returns its path, for
// programs that take --kubeconfig. The file is removed when the test ends. Its namespace is
// "default". Credential plugins and proxies of cfg are not included.
func Kubeconfig(t testing.TB, cfg *rest.Config) string {
	t.Helper()
	tls := cfg.TLSClientConfig
	cluster := &clientcmdapi.Cluster{
		Server:                   cfg.Host,
		TLSServerName:            tls.ServerName,
		InsecureSkipTLSVerify:    tls.Insecure,
		CertificateAuthority:     tls.CAFile,
		CertificateAuthorityData: tls.CAData,
	}
	user := &clientcmdapi.AuthInfo{
		ClientCertificate:     tls.CertFile,
		ClientCertificateData: tls.CertData,
		ClientKey:             tls.KeyFile,
		ClientKeyData:         tls.KeyData,
		Token:                 cfg.BearerToken,
		TokenFile:             cfg.BearerTokenFile,
		Username:              cfg.Username,
		Password:              cfg.Password,
	}
	const name = "test"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: user},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, file)
	if err != nil {
		t.Fatalf("write a kubeconfig: %v", err)
	}
	return file
}
