import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { test } from 'tap'

const root = resolve(import.meta.dirname, '..', '..')
const rooms = globSync(
  ['services/*/package.json', 'operator/package.json', 'e2e/package.json', 'bench/package.json'],
  { cwd: root },
).map(dirname)

/** Rooms that are products; the others are nothing but tests and measurements. */
const isProduct = (room) => room.startsWith('services/') || room === 'operator'

const read = (path) => JSON.parse(readFileSync(join(root, path), 'utf8'))

/** The end of an import or export of names, as the formatter writes it. */
const IMPORT = /^(?:import|export|\})(?:[^'\n]*\bfrom)? '([^'.][^']*)'$/gm

/** Names of packages that the sources of a room import, tests and their helpers apart. */
function importedPackages(room) {
  const names = new Set()
  for (const file of globSync('src/**/*.ts', { cwd: join(root, room) })) {
    if (/\.(test|nightly|soak)\.ts$|\/testing\//.test(file)) continue
    const text = readFileSync(join(root, room, file), 'utf8')
    for (const [, specifier] of text.matchAll(IMPORT)) {
      if (!specifier.startsWith('node:')) names.add(packageOf(specifier))
    }
  }
  return names
}

function packageOf(specifier) {
  const parts = specifier.split('/')
  return specifier.startsWith('@') ? `${parts[0]}/${parts[1]}` : parts[0]
}

const nameOf = (room) => read(`${room}/package.json`).name
const namesOf = (room) => Object.keys(read(`${room}/package.json`).dependencies ?? {})
const referencesOf = (room) =>
  (read(`${room}/tsconfig.json`).references ?? []).map(({ path }) => join(room, path))

/** The rooms that the compiler builds before a room. */
function builtBefore(room, found = new Set()) {
  for (const reference of referencesOf(room)) {
    if (found.has(reference)) continue
    found.add(reference)
    builtBefore(reference, found)
  }
  return found
}

/** Tools of the root, which the rooms that are nothing but tests and measurements may use anywhere. */
const tools = Object.keys(read('package.json').devDependencies)

for (const room of rooms.toSorted()) {
  await test(`${room}: what it imports is declared`, async (t) => {
    const declared = new Set([nameOf(room), ...namesOf(room)])
    if (!isProduct(room)) for (const tool of tools) declared.add(tool)
    t.same(
      [...importedPackages(room)].filter((name) => !declared.has(name)),
      [],
    )
  })

  if (isProduct(room)) {
    await test(`${room}: what it declares is imported`, async (t) => {
      const imported = importedPackages(room)
      t.same(
        namesOf(room).filter((name) => !imported.has(name)),
        [],
      )
    })

    await test(`${room}: every door has a source behind it`, async (t) => {
      const doors = Object.values(read(`${room}/package.json`).exports)
      const sources = doors.map(({ types }) =>
        types.replace('./dist/', 'src/').replace(/\.d\.ts$/, '.ts'),
      )
      t.same(
        sources.filter((source) => !existsSync(join(root, room, source))),
        [],
      )
    })
  }

  await test(`${room}: the rooms that it declares are built before it`, async (t) => {
    const built = new Set([...builtBefore(room)].map(nameOf))
    const declared = namesOf(room).filter((name) => name.startsWith('@tutti/'))
    t.same(
      declared.filter((name) => !built.has(name)),
      [],
    )
    t.same(
      referencesOf(room).filter((reference) => !declared.includes(nameOf(reference))),
      [],
    )
  })
}

await test('the compiler builds every room', async (t) => {
  t.same(referencesOf('.').toSorted(), rooms.toSorted())
})
