import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { test } from 'tap'

const root = resolve(import.meta.dirname, '..', '..')
const folders = globSync(
  ['services/*/package.json', 'operator/package.json', 'e2e/package.json', 'bench/package.json'],
  { cwd: root },
).map(dirname)

/** Packages that are products; the others are nothing but tests and measurements. */
const isProduct = (folder) => folder.startsWith('services/') || folder === 'operator'

const read = (path) => JSON.parse(readFileSync(join(root, path), 'utf8'))

/** The end of an import or export of names, as the formatter writes it. */
const IMPORT = /^(?:import|export|\})(?:[^'\n]*\bfrom)? '([^'.][^']*)'$/gm
/** Imports a package only when it is wanted, or asks where it is, to use its files. */
const RESOLVE = /(?:\bimport|\.resolve)\('([^'.][^']*)'\)/g

/** An import of types alone, of which nothing is left when a program runs. */
const TYPES = /^import type [^']*'[^']*'$/gm

/** Names of packages that the sources of a package import or resolve, tests and their helpers apart. @param [left] - what is not looked at. */
function importedPackages(folder, left = /$^/g) {
  const names = new Set()
  for (const file of globSync('src/**/*.{ts,tsx}', { cwd: join(root, folder) })) {
    if (/\.(test|nightly|soak)\.ts$|\/testing\//.test(file)) continue
    const text = readFileSync(join(root, folder, file), 'utf8').replaceAll(left, '')
    for (const [, specifier] of [...text.matchAll(IMPORT), ...text.matchAll(RESOLVE)]) {
      if (!specifier.startsWith('node:')) names.add(packageOf(specifier))
    }
  }
  return names
}

function packageOf(specifier) {
  const parts = specifier.split('/')
  return specifier.startsWith('@') ? `${parts[0]}/${parts[1]}` : parts[0]
}

const nameOf = (folder) => read(`${folder}/package.json`).name
const namesOf = (folder) => Object.keys(read(`${folder}/package.json`).dependencies ?? {})
const referencesOf = (folder) =>
  (read(`${folder}/tsconfig.json`).references ?? []).map(({ path }) => join(folder, path))

/** The folder of a package's sources: its own, unless the compiler takes them from another's. */
const sourceOf = (folder) => read(`${folder}/tsconfig.json`).compilerOptions?.rootDir ?? 'src'

/** The packages that the compiler builds before another. */
function builtBefore(folder, found = new Set()) {
  for (const reference of referencesOf(folder)) {
    if (found.has(reference)) continue
    found.add(reference)
    builtBefore(reference, found)
  }
  return found
}

/** Tools of the root, which the packages that are nothing but tests and measurements may use anywhere. */
const tools = Object.keys(read('package.json').devDependencies)

for (const folder of folders.toSorted()) {
  await test(`${folder}: what it imports is declared`, async (t) => {
    const declared = new Set([nameOf(folder), ...namesOf(folder)])
    if (!isProduct(folder)) for (const tool of tools) declared.add(tool)
    t.same(
      [...importedPackages(folder, TYPES)].filter((name) => !declared.has(name)),
      [],
    )
    for (const name of Object.keys(read(`${folder}/package.json`).devDependencies ?? {})) {
      declared.add(name)
    }
    t.same(
      [...importedPackages(folder)].filter((name) => !declared.has(name)),
      [],
    )
  })

  if (isProduct(folder)) {
    await test(`${folder}: what it declares is imported`, async (t) => {
      const imported = importedPackages(folder)
      t.same(
        namesOf(folder).filter((name) => !imported.has(name)),
        [],
      )
    })

    await test(`${folder}: every export has a source behind it`, async (t) => {
      const exported = Object.values(read(`${folder}/package.json`).exports)
      const sources = exported.map(({ types }) =>
        types.replace('./dist/', `${sourceOf(folder)}/`).replace(/\.d\.ts$/, '.ts'),
      )
      t.same(
        sources.filter((source) => !existsSync(join(root, folder, source))),
        [],
      )
    })
  }

  await test(`${folder}: the packages that it declares are built before it`, async (t) => {
    const built = new Set([...builtBefore(folder)].map(nameOf))
    const declared = namesOf(folder).filter((name) => name.startsWith('@tutti/'))
    t.same(
      declared.filter((name) => !built.has(name)),
      [],
    )
    t.same(
      referencesOf(folder).filter((reference) => !declared.includes(nameOf(reference))),
      [],
    )
  })
}

await test('the compiler builds every package', async (t) => {
  t.same(referencesOf('.').toSorted(), folders.toSorted())
})
