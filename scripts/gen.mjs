// Writes what is generated and committed: the message types of services/protocol, from its .proto files.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const room = join(dirname(fileURLToPath(import.meta.url)), '..', 'services', 'protocol')
const generator = createRequire(join(room, 'package.json'))
  .resolve('@grpc/proto-loader/package.json')
  .replace(/package\.json$/, join('build', 'bin', 'proto-loader-gen-types.js'))
const out = join(room, 'src', 'gen')

// The flags say what PROTO_OPTIONS in services/protocol/src/services.ts says to the runtime loader.
rmSync(out, { recursive: true, force: true })
execFileSync(
  process.execPath,
  [
    generator,
    '--keepCase',
    '--longs=String',
    '--enums=String',
    '--defaults',
    '--oneofs',
    '--grpcLib=@grpc/grpc-js',
    '--importFileExtension=.ts',
    `--includeDirs=${join(room, 'proto')}`,
    `--outDir=${out}`,
    '--',
    'grpc_service.proto',
    'health.proto',
  ],
  { stdio: ['ignore', 'ignore', 'inherit'] },
)

// The generator names source files by absolute path, which differs from one checkout to the next.
for (const entry of readdirSync(out, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue
  const file = join(entry.parentPath, entry.name)
  const text = readFileSync(file, 'utf8')
  writeFileSync(
    file,
    text.replace(/^\/\/ Original file: .*\/proto\//gm, '// Original file: proto/'),
  )
}
