package verify

import (
	"os"
	"runtime"
	"slices"
	"strings"
)

// What builds and tests need to find their tools and caches. Everything else of the environment stays here: keys and
// tokens live in variables of any name.
var allowed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "PWD", "NO_COLOR",
	"GOPATH", "GOCACHE", "GOMODCACHE", "GOROOT", "GOBIN", "GOFLAGS", "GOTOOLCHAIN", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GOWORK", "GOEXPERIMENT", "GOOS", "GOARCH", "GOMAXPROCS",
	"CGO_ENABLED", "CC", "CXX", "AR", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CMAKE_PREFIX_PATH", "PKG_CONFIG_PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "MAKEFLAGS", "SDKROOT", "DEVELOPER_DIR",
	"CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CARGO_TARGET_DIR", "RUSTFLAGS", "RUSTC_WRAPPER",
	"NODE_PATH", "NODE_ENV", "NVM_DIR", "NVM_BIN", "VOLTA_HOME", "FNM_DIR", "FNM_MULTISHELL_PATH", "PNPM_HOME", "BUN_INSTALL", "DENO_DIR", "COREPACK_HOME",
	"PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_ROOT", "PYENV_VERSION", "UV_CACHE_DIR", "POETRY_HOME", "PIPENV_VENV_IN_PROJECT",
	"JAVA_HOME", "JDK_HOME", "MAVEN_HOME", "M2_HOME", "GRADLE_HOME", "GRADLE_USER_HOME", "KOTLIN_HOME", "SCALA_HOME", "ANDROID_HOME", "ANDROID_SDK_ROOT",
	"DOTNET_ROOT", "NUGET_PACKAGES", "GEM_HOME", "GEM_PATH", "RBENV_ROOT", "BUNDLE_PATH", "PERL5LIB", "COMPOSER_HOME", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "NIX_PATH", "NIX_PROFILES", "NIX_SSL_CERT_FILE", "GUIX_PROFILE",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"SYSTEMROOT", "WINDIR", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "COMMONPROGRAMFILES", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
}

// Environment is what verify gets in dir, also for others that run what a model wrote. temp becomes its folder for
// temporary files.
func Environment(dir, temp string) []string {
	var env []string
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		if !slices.Contains(allowed, name) && !strings.HasPrefix(name, "LC_") {
			continue
		}
		if name == "PWD" || strings.Contains(value, "@") && strings.Contains(value, "://") {
			continue // a URL with a password in it
		}
		env = append(env, kv)
	}
	return append(env, "PWD="+dir, "TERM=dumb", "CI=true", "TMPDIR="+temp, "TMP="+temp, "TEMP="+temp)
}
