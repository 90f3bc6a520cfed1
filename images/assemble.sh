#!/bin/sh
# assemble.sh NAME: makes /out/NAME, the files of a program. It runs in the folder where `npm ci --omit=dev --workspace ...` has
# installed the program's packages; /built has the compiled workspaces.
set -eu
src=$PWD
out=/out/$1
mkdir -p "$out/services"
cd "$out"
mv "$src/node_modules" "$src/package.json" /built/LICENSE .
# npm has linked the workspaces that the program needs, and no others.
for link in node_modules/@tutti/*; do
  workspace=$(readlink "$link")
  workspace=${workspace#../../}
  mv "$src/$workspace" "$workspace"
  for entry in dist proto python; do
    [ ! -e "/built/$workspace/$entry" ] || mv "/built/$workspace/$entry" "$workspace"
  done
done

# Without tests, TypeScript and maps, and the libraries of other platforms.
find . -type f \( -name '*.test.*' -o -name '*.soak.js' -o -name '*.nightly.js' -o -name '*.ts' -o -name '*.[cm]ts' -o -name '*.map' -o -name '*.tsbuildinfo' \) -delete
find . -path ./node_modules -prune -o -type d \( -name testing -o -name tests -o -name __pycache__ \) -prune -exec rm -rf {} +
find node_modules -regextype posix-extended -type d -regex '.*node_modules/(@[^/]+/)?[^/]+/(tests?|__tests__)' -prune -exec rm -rf {} +
libraries=node_modules/onnxruntime-node/bin/napi-v6
[ ! -e $libraries ] || find $libraries -mindepth 2 -maxdepth 2 ! -path "*/linux/$(node -p process.arch)" -exec rm -rf {} +

# npm must not look for packages that only development needs, nor the time of a build be in the list.
npm pkg delete devDependencies optionalDependencies scripts
# What a workspace needs for its development alone is there too, if another workspace needs it for more.
for workspace in operator services/*; do
  [ ! -d "$workspace" ] || (cd "$workspace" && npm pkg delete devDependencies)
done
npm prune --omit=dev --offline --ignore-scripts --no-audit --no-fund
npm sbom --sbom-format cyclonedx --sbom-type application | sed '/^  "serialNumber"/d; /^    "timestamp"/d' > sbom.cdx.json
# And Node, which the images take from the same place as this build.
node -e '
const { readFileSync, writeFileSync } = require("node:fs")
const sbom = JSON.parse(readFileSync("sbom.cdx.json", "utf8"))
const { node } = process.versions
const purl = `pkg:generic/node@${node}`
sbom.components.push({ "bom-ref": purl, type: "application", name: "node", version: node, purl })
writeFileSync("sbom.cdx.json", `${JSON.stringify(sbom, null, 2)}\n`)
'
