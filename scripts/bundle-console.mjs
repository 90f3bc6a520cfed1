// Bundles the page of services/console from what the compiler has written: dist/page -> dist/assets. Run it behind tsc -b.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

const folder = join(import.meta.dirname, '..', 'services', 'console')
const dist = join(folder, 'dist')
const assets = join(dist, 'assets')
const page = join(folder, 'src', 'page')

const { outputFiles } = await build({
  entryPoints: { console: join(dist, 'page', 'main.js') },
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  write: false,
  outdir: assets,
  legalComments: 'inline',
  logLevel: 'warning',
})
mkdirSync(assets, { recursive: true })
for (const { path, contents } of outputFiles) replace(path, contents)
for (const name of ['index.html', 'console.css', 'icon.svg']) {
  replace(join(assets, name), readFileSync(join(page, name)))
}

/** A server that starts meanwhile must not read half a file. */
function replace(path, contents) {
  writeFileSync(`${path}.new`, contents)
  renameSync(`${path}.new`, path)
}
