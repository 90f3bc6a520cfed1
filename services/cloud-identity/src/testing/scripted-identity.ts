import type { CloudIdentity } from '@tutti/repository'
import { cloudIdentity } from '../index.ts'
import { entraAnswers, ScriptedServer } from './scripted-server.ts'

/** Opens the clouds' libraries, with a scripted server that gives Azure's library the token. */
export function scriptedIdentity(token: string): {
  readonly identity: CloudIdentity
  readonly server: ScriptedServer
} {
  const json = { token_type: 'Bearer', access_token: token, expires_in: 3600 }
  const server = new ScriptedServer(entraAnswers({ json }))
  const identity: CloudIdentity = {
    google: async (key) => await cloudIdentity.google(key),
    azure: async (one) => {
      const source = await cloudIdentity.azure(one)
      return () => source(server.send)
    },
  }
  return { identity, server }
}
