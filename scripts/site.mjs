// Builds the site of the documentation: npm run site -- [--out FOLDER] [--base PATH] [--serve PORT]. FOLDER (out/site) is the root of
// a host. PATH (/docs/) in it has a folder for each version, versions.json, and pages that forward to the newest one; /schemas/ has the
// JSON Schemas of the newest one, at the addresses that they bear.
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { runQuietly } from './setup/child.mjs'
import { runScript, SetupFailure } from './setup/failure.mjs'
import { ensureInstalled } from './setup/install.mjs'
import { withLock } from './setup/lock.mjs'
import { serveFolder } from './site/serve-folder.mjs'
import { addVersion, forwardingPages, newestOf } from './site/versions.mjs'

const root = resolve(import.meta.dirname, '..')
const site = join(root, 'site')
const OPTIONS = { out: { type: 'string' }, base: { type: 'string' }, serve: { type: 'string' } }

await runScript(async () => {
  const { out, base, port } = readFlags()
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  await withLock(join(root, '.tap', 'site.lock'), () => build({ out, base, version }))
  console.log(out)
  if (port === undefined) return 0
  const server = await serveFolder(out, port, base)
  console.log(`http://127.0.0.1:${server.address().port}${base}`)
  return await new Promise(() => {})
})

/** @returns {{ out: string, base: string, port: number | undefined }} */
function readFlags() {
  const { out, base = '/docs/', serve } = parseArgs({ options: OPTIONS }).values
  if (!/^\/(.+\/)?$/.test(String(base))) {
    throw new SetupFailure(`--base: got ${String(base)}, want a path such as /docs/`)
  }
  const folder = resolve(
    process.env.INIT_CWD ?? process.cwd(),
    String(out ?? join(root, 'out', 'site')),
  )
  return { out: folder, base: String(base), port: serve === undefined ? undefined : Number(serve) }
}

async function build({ out, base, version }) {
  await ensureInstalled(site)
  const docs = join(out, base)
  const folder = join(docs, version)
  const vitepress = join(site, 'node_modules', 'vitepress', 'bin', 'vitepress.js')
  mkdirSync(docs, { recursive: true })
  const env = {
    ...process.env,
    TUTTI_SITE_BASE: `${base}${version}/`,
    TUTTI_SITE_OUT: folder,
    TUTTI_SITE_VERSION: version,
  }
  await runQuietly('The build of the site', process.execPath, [vitepress, 'build', 'site'], {
    // VitePress finds vue for pages outside of its folder only so.
    cwd: root,
    env,
  })
  const list = join(docs, 'versions.json')
  const versions = addVersion(
    existsSync(list) ? JSON.parse(readFileSync(list, 'utf8')) : [],
    version,
  )
  writeFileSync(list, `${JSON.stringify(versions)}\n`)
  const newest = newestOf(versions)
  for (const [path, text] of forwardingPages(newest)) {
    mkdirSync(join(docs, path, '..'), { recursive: true })
    writeFileSync(join(docs, path), text)
  }
  if (newest === version) cpSync(join(root, 'schemas'), join(out, 'schemas'), { recursive: true })
}
