#!/usr/bin/env bash
# Builds the sdist, the wheel from it, and the image of the version in pyproject.toml, and checks them as users install them.
# Refuses, before anything is built, what is no release. Uploads nothing and tags nothing.
#
#   make release                    needs Docker
#   make release ARGS=--no-image    leaves the image out
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."

refuse() {
    printf 'no release: %s\n' "$*" >&2
    exit 2
}

# Whether the change log has a heading of a version: `## 1.2.3`, or with a date `## [1.2.3] - 2026-11-23`.
is_in_changelog() {
    sed -n 's/^## \[\{0,1\}\([^] ]*\).*/\1/p' CHANGELOG.md | grep --quiet --fixed-strings --line-regexp "$1"
}

require() {
    is_in_changelog "$1" || refuse "CHANGELOG.md has no heading of $1, the version in pyproject.toml: write '## $1' below '## Unreleased'."
    [ -z "$(git status --porcelain)" ] || refuse "not everything is committed: 'git status' lists what to commit or delete."
    ! git rev-parse --quiet --verify "refs/tags/v$1" >/dev/null || refuse "the tag v$1 exists: raise the version in pyproject.toml."
    [ -z "$2" ] || command -v docker >/dev/null || refuse "docker is missing: install it, or leave the image out: make release ARGS=--no-image"
}

build_image() {
    local said
    PROJECT_BUILD="" SPARK_APP_IMAGE=$2 docker compose build spark-master
    said=$(docker run --rm "$2" spark-app --version)
    [ "$said" = "spark-app $1" ] || refuse "the image $2 says '$said' instead of 'spark-app $1'."
}

main() {
    local version size_and_id image=
    version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
    case $* in
        "") image=spark-app:$version ;;
        --no-image) ;;
        *) refuse "the only option is --no-image, not '$*'." ;;
    esac
    require "$version" "$image"

    make --no-print-directory test-wheel
    [ -z "$image" ] || build_image "$version" "$image"

    printf '\nspark-app %s of commit %s:\n' "$version" "$(git rev-parse --short HEAD)"
    (cd dist && for file in *; do printf '%10d bytes  sha256:%s\n' "$(wc -c <"$file")" "$(sha256sum "$file")"; done)
    if [ -n "$image" ]; then
        size_and_id=$(docker image inspect --format '{{.Size}} {{.Id}}' "$image")
        printf '%10d bytes  %s  %s\n' "${size_and_id% *}" "${size_and_id#* }" "$image"
    else
        echo "without an image (--no-image)"
    fi
}

main "$@"
