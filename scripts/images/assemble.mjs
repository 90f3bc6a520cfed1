// Copies what one program runs, and nothing else: node scripts/images/assemble.mjs operator /out/operator (inside the build).
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What a room needs beside its compiled sources. */
const ROOM_ENTRIES = ['package.json', 'dist', 'proto', 'python']
/** Folders at the top of a package that no program imports. */
const UNUSED_FOLDERS = new Set([
  'test',
  'tests',
  '__tests__',
  'benchmark',
  'benchmarks',
  'bench',
  'doc',
  'docs',
  'example',
  'examples',
  '.github',
])
/** Sources and installers of packages whose binaries come ready-made. */
const UNUSED_OF = { 'onnxruntime-node': ['script', 'lib'], koffi: ['lib', 'vendor'] }
/** Tests, types, maps, texts, and the sources of binaries. */
const UNUSED_FILES =
  /\.((test|spec)\.[cm]?js|[cm]?ts|map|md|markdown|flow|tsbuildinfo|cc|hh|c|h|S|inc)$/

/**
 * The packages that a workspace needs at runtime, found as Node finds them.
 *
 * @param {string} root - of the installed checkout.
 * @param {string} workspace - a folder of it, `services/step`.
 * @returns {{ rooms: string[], packages: string[] }} folders below the root, sorted.
 * @throws Error if a needed package is not installed.
 */
export function closureOf(root, workspace) {
  const real = realpathSync(root)
  const seen = new Set()
  const visit = (folder) => {
    if (seen.has(folder)) return
    seen.add(folder)
    for (const { name, isOptional } of dependenciesOf(folder)) {
      const found = resolvePackage(real, folder, name)
      if (found !== undefined) visit(found)
      else if (!isOptional) throw new Error(`${folder} needs ${name}, which is not installed`)
    }
  }
  visit(join(real, workspace))
  const folders = [...seen].map((folder) => relative(real, folder)).toSorted()
  return {
    rooms: folders.filter((folder) => !isPackage(folder)),
    packages: folders.filter(isPackage),
  }
}

function isPackage(folder) {
  return folder.split(sep).includes('node_modules')
}

function dependenciesOf(folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = manifest
  const optional = new Set([
    ...Object.keys(optionalDependencies ?? {}),
    // npm installs peers; those that are optional come only if somebody else needs them.
    ...Object.keys(peerDependencies ?? {}).filter((name) => peerDependenciesMeta?.[name]?.optional),
  ])
  const names = new Set(
    Object.keys({ ...peerDependencies, ...dependencies, ...optionalDependencies }),
  )
  const isOptionalPeer = (name) => optional.has(name) && !(name in (optionalDependencies ?? {}))
  return (
    [...names]
      // Types are for the compiler.
      .filter((name) => !name.startsWith('@types/') && !isOptionalPeer(name))
      .map((name) => ({ name, isOptional: optional.has(name) }))
  )
}

function resolvePackage(root, folder, name) {
  for (let at = folder; ; at = dirname(at)) {
    const found = join(at, 'node_modules', name)
    if (existsSync(join(found, 'package.json'))) return realpathSync(found)
    if (at === root || dirname(at) === at) return undefined
  }
}

/**
 * Whether a file or folder of a third-party package is needed on a platform.
 *
 * @param {string} name - of the package.
 * @param {string} path - inside the package, with `/`.
 */
export function isPackageFileKept(name, path, target) {
  const parts = path.split('/')
  if (/^(licen[cs]e|notice|copying)/i.test(parts.at(-1))) return true
  if (UNUSED_FILES.test(path)) return false
  // Those are packages of their own.
  if (parts.includes('node_modules')) return false
  if (UNUSED_FOLDERS.has(parts[0]) || UNUSED_OF[name]?.includes(parts[0])) return false
  return isForPlatform(name, parts, target)
}

function isForPlatform(name, [first, ...rest], { platform, arch }) {
  if (first === 'prebuilds' && rest.length > 0) return rest[0] === `${platform}-${arch}`
  if (name === 'onnxruntime-node' && first === 'bin') {
    return [undefined, platform].includes(rest[1]) && [undefined, arch].includes(rest[2])
  }
  // Of the binaries for glibc and for musl.
  return !(name.startsWith('@koromix/koffi-') && first.startsWith('musl_'))
}

/** Whether a file or folder of a room is needed: no tests, nothing for tests, no types. */
export function isRoomFileKept(path) {
  const parts = path.split('/')
  if (!ROOM_ENTRIES.includes(parts[0])) return false
  if (parts.some((part) => ['testing', 'tests', '__pycache__'].includes(part))) return false
  if (parts[0] !== 'dist') return true
  return !/\.(test|soak)\.js$|\.d\.ts$|\.map$|\.tsbuildinfo$/.test(path)
}

/** @param {{ platform: string, arch: string }} [target] */
export function assemble(root, workspace, out, target = process) {
  const { rooms, packages } = closureOf(root, workspace)
  for (const room of rooms) {
    const { name } = JSON.parse(readFileSync(join(root, room, 'package.json'), 'utf8'))
    copyFolder(join(root, room), join(out, room), isRoomFileKept)
    const link = join(out, 'node_modules', name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(relative(dirname(link), join(out, room)), link)
  }
  for (const folder of packages) {
    const name = folder.split(`node_modules${sep}`).at(-1).split(sep).join('/')
    copyFolder(join(root, folder), join(out, folder), (path) =>
      isPackageFileKept(name, path, target),
    )
  }
  cpSync(join(root, 'LICENSE'), join(out, 'LICENSE'))
}

function copyFolder(from, to, isKept) {
  cpSync(from, to, {
    recursive: true,
    filter: (source) => {
      const path = relative(from, source).split(sep).join('/')
      return path === '' || isKept(path)
    },
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [workspace, out] = process.argv.slice(2)
  assemble(process.cwd(), workspace, resolve(out))
}
