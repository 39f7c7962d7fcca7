package target

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// secret is in every part of the kubeconfigs of these tests.
const secret = "s3cr3t"

// valid returns a kubeconfig that is accepted.
func valid() *clientcmdapi.Config {
	return &clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{secret + "c": {Server: "https://" + secret + ":" + secret + "@api.example.org:6443/one/?" + secret}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{secret + "u": {Token: secret}},
		Contexts:       map[string]*clientcmdapi.Context{secret: {Cluster: secret + "c", AuthInfo: secret + "u"}},
		CurrentContext: secret,
	}
}

func encode(t *testing.T, c *clientcmdapi.Config) []byte {
	t.Helper()
	data, err := clientcmd.Write(*c)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// hazard is a part of a kubeconfig that is refused unless it is allowed.
type hazard struct {
	name  string
	set   func(*clientcmdapi.Config)
	says  string
	allow Allow
}

func cluster(f func(*clientcmdapi.Cluster)) func(*clientcmdapi.Config) {
	return func(c *clientcmdapi.Config) { f(c.Clusters[secret+"c"]) }
}

func user(f func(*clientcmdapi.AuthInfo)) func(*clientcmdapi.Config) {
	return func(c *clientcmdapi.Config) { f(c.AuthInfos[secret+"u"]) }
}

func hazards(t *testing.T) []hazard {
	t.Helper()
	file := filepath.Join(t.TempDir(), secret)
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	exec := &clientcmdapi.ExecConfig{Command: secret, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"}
	return []hazard{
		{"exec", user(func(u *clientcmdapi.AuthInfo) { u.Token, u.Exec = "", exec }), "exec", Allow{Exec: true}},
		{"auth-provider", user(func(u *clientcmdapi.AuthInfo) {
			u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: secret, Config: map[string]string{secret: secret}}
		}), "auth-provider", Allow{Exec: true}},
		{"tokenFile", user(func(u *clientcmdapi.AuthInfo) { u.TokenFile = file }), "tokenFile", Allow{Files: true}},
		{"client-certificate", user(func(u *clientcmdapi.AuthInfo) { u.ClientCertificate, u.ClientKeyData = file, []byte(secret) }), "client-certificate,", Allow{Files: true}},
		{"client-key", user(func(u *clientcmdapi.AuthInfo) { u.ClientKey = file }), "client-key,", Allow{Files: true}},
		{"certificate-authority", cluster(func(c *clientcmdapi.Cluster) { c.CertificateAuthority = file }), "certificate-authority,", Allow{Files: true}},
		{"insecure", cluster(func(c *clientcmdapi.Cluster) { c.InsecureSkipTLSVerify = true }), "insecure-skip-tls-verify", Allow{Insecure: true}},
		{"http", cluster(func(c *clientcmdapi.Cluster) { c.Server = "http://" + secret }), "must be an https URL", Allow{Insecure: true}},
		{"socket", cluster(func(c *clientcmdapi.Cluster) { c.Server = "unix:///" + secret }), "must be a URL", Allow{}},
		{"proxy", cluster(func(c *clientcmdapi.Cluster) { c.ProxyURL = "file://" + secret + file }), "proxy-url", Allow{}},
		{"no context", func(c *clientcmdapi.Config) { c.CurrentContext = secret + "x" }, "current-context", Allow{}},
		{"no cluster", func(c *clientcmdapi.Config) { c.Clusters = nil }, "no cluster", Allow{}},
		{"no user", func(c *clientcmdapi.Config) { c.AuthInfos = nil }, "no user", Allow{}},
	}
}

func TestKubeconfig(t *testing.T) {
	t.Run("valid", func(t *testing.T) {
		config, err := parse(encode(t, valid()), Allow{})
		if err != nil {
			t.Fatal(err)
		}
		if got := serverOf(config); got != "https://api.example.org:6443/one" {
			t.Errorf("the server is shown as %s", got)
		}
		if config.BearerToken != secret {
			t.Error("the token is missing")
		}
	})
	for _, h := range hazards(t) {
		t.Run(h.name, func(t *testing.T) {
			config := valid()
			h.set(config)
			data := encode(t, config)
			_, err := parse(data, Allow{})
			if err == nil {
				t.Fatal("it was accepted")
			}
			if !strings.Contains(err.Error(), h.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q does not say %q in one line", err, h.says)
			}
			quotesNothing(t, err)
			_, err = parse(data, h.allow)
			if allowed := h.allow != (Allow{}); allowed && err != nil {
				t.Errorf("it is allowed, and refused: %v", err)
			}
			others := Allow{!h.allow.Exec, !h.allow.Files, !h.allow.Insecure}
			if _, err = parse(data, others); err == nil {
				t.Error("it was accepted because something else is allowed")
			}
		})
	}
}

func quotesNothing(t *testing.T, err error) {
	t.Helper()
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the error quotes the kubeconfig: %v", err)
	}
}

func TestBrokenKubeconfig(t *testing.T) {
	for name, text := range map[string]string{
		"text":           secret,
		"YAML":           "{" + secret + ": [",
		"another kind":   "apiVersion: v1\nkind: Secret\nmetadata: {name: " + secret + "}",
		"another type":   "apiVersion: v1\nkind: Config\nclusters: " + secret,
		"base64":         strings.ReplaceAll(string(encode(t, valid())), "token: "+secret, "client-key-data: "+secret+"!"),
		"empty":          "",
		"both passwords": strings.ReplaceAll(string(encode(t, valid())), "token: "+secret, "token: "+secret+"\n    username: "+secret),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Identity{Kubeconfig: []byte(text)}.config(&rest.Config{}, Allow{})
			if err == nil {
				t.Fatal("it was accepted")
			}
			quotesNothing(t, err)
		})
	}
	t.Run("certificate", func(t *testing.T) {
		config := valid()
		user(func(u *clientcmdapi.AuthInfo) {
			u.Token, u.ClientCertificateData, u.ClientKeyData = "", []byte(secret), []byte(secret)
		})(config)
		_, err := Options{Config: &rest.Config{}}.remote(t.Context(), Identity{Kubeconfig: encode(t, config)}, func() {})
		if err == nil {
			t.Fatal("it was accepted")
		}
		quotesNothing(t, err)
	})
}

func TestIdentity(t *testing.T) {
	kubeconfig := encode(t, valid())
	t.Run("keys", func(t *testing.T) {
		same := Identity{kubeconfig, "user", []string{"b", "a", "a"}}.key() == Identity{kubeconfig, "user", []string{"a", "b"}}.key()
		if !same {
			t.Error("the order of groups makes another target")
		}
		seen := map[string]bool{}
		for _, id := range []Identity{
			{}, {Kubeconfig: []byte{}}, {User: "a"}, {Groups: []string{"a"}}, {Kubeconfig: kubeconfig}, {kubeconfig, "a", nil}, {kubeconfig, "", []string{"a"}},
		} {
			if seen[id.key()] {
				t.Errorf("%v has the key of another", id)
			}
			seen[id.key()] = true
		}
	})
	t.Run("an empty kubeconfig is not the local cluster", func(t *testing.T) {
		if (Identity{Kubeconfig: []byte{}}).local() {
			t.Error("it is")
		}
	})
	t.Run("a kubeconfig that impersonates", func(t *testing.T) {
		config := valid()
		user(func(u *clientcmdapi.AuthInfo) { u.Impersonate = secret })(config)
		data := encode(t, config)
		if _, err := (Identity{Kubeconfig: data}).config(&rest.Config{}, Allow{}); err != nil {
			t.Error(err)
		}
		_, err := Identity{Kubeconfig: data, User: "a"}.config(&rest.Config{}, Allow{})
		if err == nil {
			t.Fatal("it may impersonate anybody")
		}
		quotesNothing(t, err)
	})
}
