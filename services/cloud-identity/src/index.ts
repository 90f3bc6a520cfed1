import type { CloudIdentity } from '@tutti/repository'
import { openAzure } from './azure-identity.ts'
import { openGoogle } from './google-identity.ts'

/** The libraries of Google and Azure, each loaded when a repository needs it. */
export const cloudIdentity: CloudIdentity = { google: openGoogle, azure: openAzure }
