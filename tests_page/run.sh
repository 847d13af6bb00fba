#!/usr/bin/env bash
# Builds the explorer page from its source, compares it with the committed one, and tests it in a real browser.
# Usage: tests_page/run.sh PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
page=src/lintra/data/explorer.html

recent='const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major * 100 + minor < 2019 ? 1 : 0)'
command -v npm >/dev/null && node -e "$recent" || {
  echo "make test-page needs Node 20.19 or newer with npm; on Debian: apt-get install nodejs npm" >&2
  exit 1
}
npm ci --prefix explorer --loglevel=error
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
LINTRA_PAGE="$built" npm run build --prefix explorer --silent
cmp "$built/explorer.html" "$page" || {
  echo "The committed page is not what its source builds: run make page and commit $page." >&2
  exit 1
}

find_browser() {
  for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome; do
    [ -n "$name" ] && command -v "$name" && return
  done
}
browser=$(find_browser) || {
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq >/dev/null && apt-get install -y -qq --no-install-recommends chromium >/dev/null
  fi
  browser=$(find_browser)
} || {
  echo "make test-page needs Chromium; on Debian: apt-get install chromium. Say where it is with CHROMIUM=..." >&2
  exit 1
}
CHROMIUM=$browser "$python" -m pytest tests_page -q -s -p no:cacheprovider
