package devcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trimtab-dev/trimtab/devcluster/internal/folder"
	"github.com/trimtab-dev/trimtab/devcluster/internal/pki"
)

// signature is the first line of each kubeconfig that devcluster writes. A file
// without it is not overwritten.
const signature = "# Written by devcluster, which overwrites this file at each start.\n"

const infoFile = "cluster.json"

func (c *Cluster) kubeconfig() string {
	if c.options.Kubeconfig != "" {
		return c.options.Kubeconfig
	}
	return c.folder.Join("kubeconfig")
}

// kubeconfigFor writes the kubeconfig of a component.
func (c *Cluster) kubeconfigFor(identity string) string {
	return c.folder.Join(identity + ".kubeconfig")
}

func (c *Cluster) writeKubeconfigs(context.Context) error {
	for _, identity := range []string{pki.Controllers, pki.Scheduler, pki.Nodes} {
		if err := c.writeKubeconfig(c.kubeconfigFor(identity), identity); err != nil {
			return err
		}
	}
	path, err := filepath.Abs(c.kubeconfig())
	if err != nil {
		return fmt.Errorf("kubeconfig %q: %w", c.kubeconfig(), err)
	}
	c.options.Kubeconfig = path
	if err := refuseForeign(path); err != nil {
		return err
	}
	if err := c.writeKubeconfig(path, pki.Admin); err != nil {
		return err
	}
	if c.folder.Temporary() {
		c.onStop(func() error { return removeFile(path) })
	}
	c.config, err = c.adminConfig()
	return err
}

func (c *Cluster) writeKubeconfig(path, identity string) error {
	const name = "devcluster"
	cluster, user, kctx := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo(), clientcmdapi.NewContext()
	cluster.Server = "https://" + c.listener.Addr().String()
	kctx.Cluster, kctx.AuthInfo = name, name
	for path, into := range map[string]*[]byte{
		c.pki.Cert(pki.CA):   &cluster.CertificateAuthorityData,
		c.pki.Cert(identity): &user.ClientCertificateData,
		c.pki.Key(identity):  &user.ClientKeyData,
	} {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		*into = content
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[name], config.AuthInfos[name], config.Contexts[name] = cluster, user, kctx
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("kubeconfig of %s: %w", identity, err)
	}
	if err := folder.WriteFile(path, append([]byte(signature), content...)); err != nil {
		return fmt.Errorf("write kubeconfig %q: %w; use a writable file", path, err)
	}
	return nil
}

func refuseForeign(path string) error {
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && bytes.HasPrefix(content, []byte(signature)):
		return nil
	case err != nil:
		return fmt.Errorf("read kubeconfig %q: %w", path, err)
	}
	return fmt.Errorf("kubeconfig %q exists and was not written by devcluster; choose another file", path)
}

// announce writes the description of the running cluster into its data folder.
func (c *Cluster) announce() error {
	content, err := json.Marshal(c.info)
	if err != nil {
		return err
	}
	if err := c.folder.Write(infoFile, append(content, '\n')); err != nil {
		return fmt.Errorf("write %q: %w", c.folder.Join(infoFile), err)
	}
	c.onStop(func() error { return removeFile(c.folder.Join(infoFile)) })
	return nil
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
