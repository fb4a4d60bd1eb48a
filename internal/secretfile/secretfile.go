// Package secretfile knows which files hold nothing but secrets, by their names and by what stands in them. It reads no
// file itself.
package secretfile

import (
	"bytes"
	"path"
	"regexp"
	"strings"
)

var secretName = []string{
	".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".git-credentials", ".npmrc", ".pypirc", ".htpasswd", ".vault-token", ".boto", ".s3cfg", "credentials", "credentials.json", "client_secret*.json",
	"service-account*.json", "service_account*.json", "secrets.yml", "secrets.yaml", "secrets.json", "secrets.toml", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_*_sk", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.age-key", "*.ppk", "*.asc",
	"*.tfstate", "*.tfstate.backup", "*.tfvars", "terraform.rc", ".terraformrc", ".dockercfg", "kubeconfig", "master.key", "wallet.dat",
}

var secretDir = regexp.MustCompile(`(^|/)(\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.password-store|\.docker|\.config/gcloud|\.config/gh)/`)

// Samples hold no secrets, and are what a model is asked for.
var sample = regexp.MustCompile(`\.(example|sample|template|dist|defaults?|schema|d\.ts|ts|js|pub)$|example|sample`)

// publicPEM ends names of PEM files that are public by habit.
var publicPEM = regexp.MustCompile(`(^|[._-])(ca|cert|certs|chain|fullchain|pub|public|crt|bundle)([._-]|$)`)

// Name says whether rel, relative with slashes, is by its name a file of secrets.
func Name(rel string) bool {
	rel = strings.ToLower(rel)
	name := path.Base(rel)
	if secretDir.MatchString(rel) {
		return true
	}
	if sample.MatchString(name) {
		return false
	}
	for _, p := range secretName {
		if ok, _ := path.Match(p, name); ok {
			return !(strings.HasSuffix(name, ".pem") && publicPEM.MatchString(strings.TrimSuffix(name, ".pem")))
		}
	}
	return false
}

// keyHead is a key's own header at the start of a line; code that only mentions one has it inside a string.
var keyHead = regexp.MustCompile(`(?m)^-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----`)

// Key says whether a private key stands somewhere in a text.
func Key(text []byte) bool { return bytes.Contains(text, []byte("PRIVATE KEY")) && keyHead.Match(text) }

// Text says whether a whole file is a secret by what stands in it, whatever its name: a private key as such,
// not one that is quoted somewhere in a program.
func Text(text []byte) bool {
	if !bytes.Contains(text, []byte("PRIVATE KEY")) {
		return false
	}
	at := keyHead.FindIndex(text)
	return at != nil && len(strings.TrimSpace(string(text[:at[0]]))) < 200 && len(text) < 64<<10
}
