package target

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Allow says which parts of kubeconfigs are accepted although they reach into the operator's own process
// or make it trust whoever answers. The zero value refuses all of them.
type Allow struct {
	// Exec allows credential plugins: programs that run in the operator's container.
	Exec bool
	// Files allows the names of files in the operator's container: certificates, keys, tokens.
	Files bool
	// Insecure allows servers whose certificate is not verified, and http.
	Insecure bool
}

// parse returns the client configuration of a kubeconfig. Its errors quote nothing of it: whoever reads
// them may not read the Secret that it comes from.
func parse(kubeconfig []byte, allow Allow) (*rest.Config, error) {
	if len(kubeconfig) == 0 {
		return nil, errors.New("the kubeconfig is empty")
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil { // may quote it
		return nil, errors.New("the kubeconfig cannot be decoded: it must be YAML or JSON of kind Config, with base64 for data")
	}
	cluster, user, err := current(config)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkCluster(cluster, allow), checkUser(user, allow)); err != nil {
		return nil, err
	}
	out, err := clientcmd.NewNonInteractiveClientConfig(*config, config.CurrentContext, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil { // may quote it
		return nil, errors.New("the kubeconfig's credentials exclude each other, or name files that cannot be read")
	}
	return out, nil
}

// current returns the cluster and the user of the current context.
func current(config *clientcmdapi.Config) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	context := config.Contexts[config.CurrentContext]
	if context == nil {
		return nil, nil, errors.New("the kubeconfig has no context that current-context names")
	}
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster == nil {
		return nil, nil, errors.New("the kubeconfig has no cluster that its current context names")
	}
	if user == nil {
		return nil, nil, errors.New("the kubeconfig has no user that its current context names")
	}
	return cluster, user, nil
}

func checkCluster(c *clientcmdapi.Cluster, allow Allow) error {
	var problems []error
	server, err := url.Parse(c.Server)
	switch {
	case err != nil || server.Host == "":
		problems = append(problems, errors.New("the kubeconfig's server must be a URL such as https://api.example.org:6443"))
	case server.Scheme != "https" && (server.Scheme != "http" || !allow.Insecure):
		problems = append(problems, errors.New("the kubeconfig's server must be an https URL"))
	}
	if c.InsecureSkipTLSVerify && !allow.Insecure {
		problems = append(problems, refused("insecure-skip-tls-verify", "use certificate-authority-data"))
	}
	if c.CertificateAuthority != "" && !allow.Files {
		problems = append(problems, refused("certificate-authority, which names a file", "use certificate-authority-data"))
	}
	if c.ProxyURL != "" {
		if proxy, err := url.Parse(c.ProxyURL); err != nil || proxy.Host == "" || !isProxyScheme(proxy.Scheme) {
			problems = append(problems, errors.New("the kubeconfig's proxy-url must be an http, https or socks5 URL"))
		}
	}
	return errors.Join(problems...)
}

func isProxyScheme(scheme string) bool {
	return scheme == "http" || scheme == "https" || scheme == "socks5"
}

func checkUser(u *clientcmdapi.AuthInfo, allow Allow) error {
	var problems []error
	check := func(wrong bool, what, instead string) {
		if wrong {
			problems = append(problems, refused(what, instead))
		}
	}
	check(u.Exec != nil && !allow.Exec, "exec, which runs a program", "use token or client-certificate-data")
	check(u.AuthProvider != nil && !allow.Exec, "auth-provider", "use token or client-certificate-data")
	check(u.TokenFile != "" && !allow.Files, "tokenFile, which names a file", "use token")
	check(u.ClientCertificate != "" && !allow.Files, "client-certificate, which names a file", "use client-certificate-data")
	check(u.ClientKey != "" && !allow.Files, "client-key, which names a file", "use client-key-data")
	return errors.Join(problems...)
}

func refused(what, instead string) error {
	return fmt.Errorf("the kubeconfig has %s; the operator does not allow that: %s", what, instead)
}

// serverOf returns the URL of a server as messages show it, without credentials and parameters.
func serverOf(config *rest.Config) string {
	u, err := url.Parse(config.Host)
	if err != nil || u.Host == "" {
		return "the API server"
	}
	return strings.TrimSuffix((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), "/")
}
