/** A model's directory as found in a model repository. Nothing of it has been checked yet. */
export interface RepositoryModel {
  /** Name of the model; qualified where names are unique only within a repository. */
  readonly name: string
  /** Absolute path of the directory that holds the model's directory. */
  readonly repository: string
  /** Absolute path of the model's directory. */
  readonly directory: string
  /** Text of config.pbtxt, with overrides applied; absent if there is none. */
  readonly configText?: string
  /** Path of the configuration for messages. The file may not exist. */
  readonly configPath: string
  /** Numeric version directories, ascending. */
  readonly versions: readonly number[]
  /** Why the directory cannot be used (name in two repositories, unreadable file); absent otherwise. */
  readonly error?: string
}
