package secretfile

import (
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	for rel, want := range map[string]bool{
		".env": true, "web/.env.production": true, "PROD.ENV": true, ".envrc": true, ".env.example": false, "environment.go": false,
		"id_rsa": true, "id_rsa.pub": false, "tls/server.key": true, "keys.age-key": true, "tls/ca.pem": false, "tls/server.pem": true,
		".aws/credentials": true, "home/.ssh/config": true, "credentials.json": true, "credentials.ts": false, "secrets.yml": true,
		"infra/prod.tfvars": true, "main.go": false, "keyboard.go": false,
	} {
		if got := Name(rel); got != want {
			t.Errorf("%s: %v, want %v", rel, got, want)
		}
	}
}

func TestText(t *testing.T) {
	const begin = "-----BEGIN RSA " + "PRIVATE KEY-----"
	for text, want := range map[string]bool{
		begin + "\nMIIE\n":                       true,
		"# a comment\n\n" + begin + "\nMIIE\n":   true,
		"const key = \"" + begin + "\\n\"\n":     false,
		"a file that says PRIVATE KEY somewhere": false,
		"":                                       false,
	} {
		if got := Text([]byte(text)); got != want {
			t.Errorf("%.40q: %v, want %v", text, got, want)
		}
	}
}

func TestKey(t *testing.T) {
	long := strings.Repeat("a line of a file\n", 100)
	for text, want := range map[string]bool{
		long + "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE\n":              true,
		"-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\n\nlQ\n":               true,
		"-----BEGIN EC " + "PRIVATE KEY-----MIIE all in one line":          true,
		"const key = \"-----BEGIN RSA " + "PRIVATE KEY-----\\n\"\n" + long: false,
		"-----BEGIN PUBLIC KEY-----\n":                                     false,
	} {
		if got := Key([]byte(text)); got != want {
			t.Errorf("%.40q: %v, want %v", text, got, want)
		}
	}
	if Text([]byte(long + "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE\n")) {
		t.Error("a file with a key in it is not a key")
	}
}
