import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'tap'
import { parse } from 'yaml'
import { releaseNotes } from './check.mjs'
import { HOME } from './home.mjs'
import { setVersion, textFiles, withVersion } from './version.mjs'

const root = resolve(import.meta.dirname, '..', '..')
const read = (path) => readFileSync(join(root, path), 'utf8')
const FROM = JSON.parse(read('package.json')).version
const TO = '9.8.7-rc.1'
const files = textFiles(root)

/** Have versions of their own, tell of earlier ones, or only show what a version looks like. */
const OTHER =
  /^(package-lock\.json|CHANGELOG\.md|bench\/.*|.*\/go\.(mod|sum)|.*requirements\.txt|e2e\/src\/chart\/helm\.ts|e2e\/cluster\/README\.md|charts\/tutti\/ci\/.*|scripts\/site\/versions\.test\.mjs)$/

const entries = (text) =>
  Object.entries(JSON.parse(text).packages).filter(([path]) => path.includes('node_modules/'))
const written = (path, to) => withVersion(path, read(path), { from: FROM, to })

await test('every file has the version of package.json, and no file another one of its own', async (t) => {
  const escaped = FROM.replaceAll('.', '\\.')
  const mention = new RegExp(`(?<![\\w.-])v?${escaped}(?![\\w.-]*\\w)`)
  const unknown = files.filter((path) => !OTHER.test(path) && mention.test(written(path, TO)))
  t.same(unknown, [], 'have a place that PLACES of version.mjs does not know')
  t.same(
    files.filter((path) => written(path, FROM) !== read(path)),
    [],
  )
})

await test('chart, packages, lockfile, server and images follow', async (t) => {
  const chart = parse(written('charts/tutti/Chart.yaml', TO))
  t.match(chart, { version: TO, appVersion: TO })
  t.match(chart.annotations['artifacthub.io/images'], `tutti/step:${TO}`)
  t.match(JSON.parse(written('services/cli/package.json', TO)), {
    version: TO,
    dependencies: { '@tutti/server': TO },
  })
  const lock = JSON.parse(written('package-lock.json', TO))
  t.equal(lock.version, TO)
  t.equal(lock.packages['services/cli'].version, TO)
  t.equal(lock.packages['services/cli'].dependencies['@tutti/server'], TO)
  t.same(entries(written('package-lock.json', TO)), entries(read('package-lock.json')))
  t.match(written('examples/face/manifest.yaml', TO), `image://tutti/samples:${TO}/model`)
  t.match(written('docs/kubernetes.md', TO), `/charts/tutti --version ${TO}`)
})

await test('what is no version is refused', async (t) => {
  for (const text of ['', 'v1.2.3', '1.2', '1.2.3-', '1.2.3+4', '01.2.3', '1.2.3-rc.01']) {
    t.throws(() => setVersion(root, text), { message: /want X\.Y\.Z/ }, text)
  }
})

await test('a tag is of the version, and its changes are told', async (t) => {
  const changelog =
    '# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-11-27\n\n- New.\n\n## [1.2.2]\n'
  t.equal(releaseNotes({ tag: 'v1.2.3', version: '1.2.3', changelog }), '- New.\n')
  const refused = (o, message) => t.throws(() => releaseNotes({ changelog, ...o }), { message })
  refused({ tag: 'v1.2.4', version: '1.2.3' }, /tag v1\.2\.4: package\.json has version 1\.2\.3/)
  refused({ tag: 'v1.2.4', version: '1.2.4' }, /got the sections \[Unreleased\], .*\[1\.2\.4\] - /)
  refused({ tag: 'v1.2.2', version: '1.2.2' }, /want "## \[1\.2\.2\] - YYYY-MM-DD"/)
})

await test('pages and chart name one place where releases are', async (t) => {
  const own = [`oci://${HOME.registry}/charts/tutti`, HOME.source]
  for (const path of files.filter((name) => /\.(md|ya?ml|tpl|txt)$/.test(name))) {
    if (/^(CHANGELOG|scripts\/release\/)/.test(path)) continue
    for (const [found] of read(path).matchAll(
      /oci:\/\/[^\s`]*charts\/tutti|https:\/\/github\.com\/[^/\s]+\/tutti\b/g,
    )) {
      t.ok(
        own.includes(found),
        `${path}: ${found}, want ${own.join(' or ')} of scripts/release/home.mjs`,
      )
    }
  }
})
