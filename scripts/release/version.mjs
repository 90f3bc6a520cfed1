import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SetupFailure } from '../setup/failure.mjs'

/** Numbers have no zeros before them: npm and Helm refuse them. */
const SEMVER =
  /^(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-(?!0\d+(\.|$))[0-9A-Za-z-]+(\.(?!0\d+(\.|$))[0-9A-Za-z-]+)*)?$/
/** Tells of earlier versions. */
const HISTORY = /^CHANGELOG\.md$|^bench\//

/** Where Tutti's version stands beside the package.json of the root: in which files, behind and before what. */
const PLACES = [
  { files: /(^|\/)package\.json$/, behind: '^  "version": "', before: '"' },
  { files: /(^|\/)package\.json$/, behind: '"@tutti/[\\w-]+": "', before: '"' },
  { files: /^charts\/tutti\/Chart\.yaml$/, behind: '^(?:version|appVersion): ', before: '$' },
  // Images, the npm package, and lines of Helm and of downloads.
  { behind: '\\btutti/[a-z-]+:' },
  { behind: '(?<!charts/)tutti-', before: '\\.(?:tgz|cdx\\.json)' },
  { behind: 'charts/tutti(?: --version |:)' },
  { behind: '/releases/download/v' },
  { behind: '/tutti-operator, version ' },
]

/**
 * A file's text with the version `to` where it has Tutti's version `from`.
 *
 * @param {string} path - in the checkout.
 */
export function withVersion(path, text, { from, to }) {
  if (path === 'package-lock.json') return lockWithVersion(text, { from, to })
  return PLACES.reduce((changed, { files = /./, behind, before = '(?![\\w.-]*\\w)' }) => {
    if (!files.test(path) || HISTORY.test(path)) return changed
    const place = new RegExp(`(${behind})${from.replaceAll('.', '\\.')}(?=${before})`, 'gm')
    return changed.replace(place, (_, kept) => `${kept}${to}`)
  }, text)
}

/** Versions of other packages may be equal to ours, so their entries stay untouched. */
function lockWithVersion(text, { from, to }) {
  const lock = JSON.parse(text)
  const own = Object.entries(lock.packages).filter(([path]) => !path.includes('node_modules/'))
  for (const entry of [lock, ...own.map(([, value]) => value)]) {
    if (entry.version === from) entry.version = to
    for (const name of Object.keys(entry.dependencies ?? {})) {
      if (name.startsWith('@tutti/')) entry.dependencies[name] = to
    }
  }
  return `${JSON.stringify(lock, undefined, 2)}\n`
}

/**
 * Sets the version, in the package.json of the root and wherever else it stands.
 *
 * @param {string} root - of a checkout of git.
 * @returns {string[]} the files that changed.
 * @throws SetupFailure if it is no version.
 */
export function setVersion(root, to) {
  if (!SEMVER.test(to)) throw new SetupFailure(`version ${to}: want X.Y.Z or X.Y.Z-rc.1.`)
  const { version: from } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  return textFiles(root).filter((path) => {
    const before = readFileSync(join(root, path), 'utf8')
    const after = withVersion(path, before, { from, to })
    if (after !== before) writeFileSync(join(root, path), after)
    return after !== before
  })
}

/** Paths of the files that git knows and that are texts. */
export function textFiles(root) {
  const args = ['grep', '-I', '--files-with-matches', '--null', '-e', '']
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 }
  return execFileSync('git', args, options).split('\0').filter(Boolean)
}
