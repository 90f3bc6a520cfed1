// Every part has its place: arrows between packages and folders point one way, and no text names a file that is gone.
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { test } from 'tap'

const root = resolve(import.meta.dirname, '..', '..')
const read = (path) => readFileSync(join(root, path), 'utf8')
const packages = [
  ...globSync('services/*/package.json', { cwd: root }).map(dirname),
  'operator',
].toSorted()

/** Sources of a package, tests and their helpers apart. */
const sourcesOf = (folder) =>
  globSync('src/**/*.{ts,tsx}', { cwd: join(root, folder) })
    .filter((file) => !/\.(test|nightly|soak|d)\.tsx?$|\/(testing|gen|cases)\//.test(file))
    .map((file) => join(folder, file))

/**
 * Who imports whom within a package. A folder is one room; in a folder that has folders, each file is a room of its own: some of them
 * put the folders together, and others serve them.
 */
function roomsOf(folder) {
  const files = sourcesOf(folder)
  const parents = new Set(files.map((file) => dirname(dirname(file))))
  const roomOf = (file) => (parents.has(dirname(file)) ? file : dirname(file))
  const imports = new Map()
  for (const file of files) {
    const room = roomOf(file)
    if (!imports.has(room)) imports.set(room, new Map())
    for (const [, specifier] of read(file).matchAll(/ from '(\.[^']+)'/g)) {
      const other = join(dirname(file), specifier)
      if (!other.startsWith(`${folder}/src/`) || roomOf(other) === room) continue
      imports.get(room).set(roomOf(other), `${file} imports ${other}`)
    }
  }
  return imports
}

/** @param imports - what each imports, and how. @returns the imports of one circle, or none. */
function findCircle(imports) {
  const done = new Set()
  const path = []
  const visit = (one) => {
    if (done.has(one)) return []
    const from = path.indexOf(one)
    if (from >= 0) {
      const circle = [...path.slice(from), one]
      return circle.slice(1).map((to, i) => imports.get(circle[i]).get(to))
    }
    path.push(one)
    for (const other of imports.get(one)?.keys() ?? []) {
      const found = visit(other)
      if (found.length > 0) return found
    }
    path.pop()
    done.add(one)
    return []
  }
  for (const one of imports.keys()) {
    const found = visit(one)
    if (found.length > 0) return found
  }
  return []
}

for (const folder of packages) {
  await test(`${folder}: no folder imports one that imports it`, async (t) => {
    t.same(findCircle(roomsOf(folder)), [])
  })
}

await test('a circle is found, and told by its imports', async (t) => {
  const imports = { a: { b: 'a/1 imports b/1' }, b: { c: 'b/2 imports c/1', a: 'b/2 imports a/1' } }
  const maps = Object.entries(imports).map(([from, to]) => [from, new Map(Object.entries(to))])
  t.same(findCircle(new Map(maps)), ['a/1 imports b/1', 'b/2 imports a/1'])
})

/** The rows of ARCHITECTURE.md's table of packages: folder and what it may import. */
function packageTable() {
  const rows = read('ARCHITECTURE.md').matchAll(
    /^\| \[[\w-]+\]\(([\w/-]+)\) +\| [^|]+\| ([^|]+?) +\|$/gm,
  )
  return [...rows].map(([, folder = '', imports = '']) => ({
    folder,
    imports: imports.split(', '),
  }))
}

const dependenciesOf = (folder) =>
  Object.keys(JSON.parse(read(`${folder}/package.json`)).dependencies ?? {})
    .filter((name) => name.startsWith('@tutti/'))
    .map((name) => name.slice('@tutti/'.length))

await test('ARCHITECTURE.md has every package, and what it imports, from the ground up', async (t) => {
  const rows = packageTable()
  const folders = rows.map(({ folder }) => folder)
  t.same(new Set(folders), new Set(packages))
  t.equal(folders.length, packages.length)
  const above = []
  for (const { folder, imports } of rows) {
    const wanted = imports[0] === '-' ? [] : imports
    t.same(
      wanted,
      above.filter((name) => dependenciesOf(folder).includes(name)),
      folder,
    )
    t.equal(wanted.length, dependenciesOf(folder).length, `${folder} imports none below it`)
    above.push(folder.split('/').at(-1))
  }
})

/** Texts that name files; what is made up for a test names none. */
const isText = (file) =>
  /\.(md|ts|tsx|mjs|yaml|py|sh)$/.test(file) &&
  !/\/gen\/|\.test\.mjs$|^(CHANGELOG|CONTRIBUTING)\.md$/.test(file)
const PATH = /(?<![\w./@<>-])(?:services|operator|e2e|scripts|bench)\/[\w./@-]*\w(?![*\w])/g

await test('what texts and comments name is there', async (t) => {
  const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
    .trim()
    .split('\n')
  const gone = files
    .filter(isText)
    .filter((file) => existsSync(join(root, file)))
    .flatMap((file) =>
      [...read(file).matchAll(PATH)]
        .map(([path]) => path)
        // Files that are built are not in every checkout.
        .filter((path) => !path.includes('/dist/') && !existsSync(join(root, path)))
        .map((path) => `${file}: ${path}`),
    )
  t.same(gone, [])
})
