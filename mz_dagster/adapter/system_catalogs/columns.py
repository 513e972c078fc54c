"""The columns of the system catalogs, as PostgreSQL 15 has them.

A relation is its name, its object id (0 for a view, which gets one by its place), and its columns, each a name and a
type, with `?` if it may be NULL.
"""

from __future__ import annotations

#: Relations of `pg_catalog` that have rows.
FILLED = """
pg_class 1259
    oid:oid relname:name relnamespace:oid reltype:oid reloftype:oid relowner:oid relam:oid relfilenode:oid
    reltablespace:oid relpages:int4 reltuples:float4 relallvisible:int4 reltoastrelid:oid relhasindex:bool
    relisshared:bool relpersistence:char relkind:char relnatts:int2 relchecks:int2 relhasrules:bool
    relhastriggers:bool relhassubclass:bool relrowsecurity:bool relforcerowsecurity:bool relispopulated:bool
    relreplident:char relispartition:bool relrewrite:oid relfrozenxid:xid relminmxid:xid relacl:aclitem[]?
    reloptions:text[]? relpartbound:pg_node_tree?
pg_namespace 2615
    oid:oid nspname:name nspowner:oid nspacl:aclitem[]?
pg_attribute 1249
    attrelid:oid attname:name atttypid:oid attstattarget:int4 attlen:int2 attnum:int2 attndims:int4 attcacheoff:int4
    atttypmod:int4 attbyval:bool attalign:char attstorage:char attcompression:char attnotnull:bool atthasdef:bool
    atthasmissing:bool attidentity:char attgenerated:char attisdropped:bool attislocal:bool attinhcount:int4
    attcollation:oid attacl:aclitem[]? attoptions:text[]? attfdwoptions:text[]? attmissingval:anyarray?
pg_attrdef 2604
    oid:oid adrelid:oid adnum:int2 adbin:pg_node_tree
pg_type 1247
    oid:oid typname:name typnamespace:oid typowner:oid typlen:int2 typbyval:bool typtype:char typcategory:char
    typispreferred:bool typisdefined:bool typdelim:char typrelid:oid typsubscript:regproc typelem:oid typarray:oid
    typinput:regproc typoutput:regproc typreceive:regproc typsend:regproc typmodin:regproc typmodout:regproc
    typanalyze:regproc typalign:char typstorage:char typnotnull:bool typbasetype:oid typtypmod:int4 typndims:int4
    typcollation:oid typdefaultbin:pg_node_tree? typdefault:text? typacl:aclitem[]?
pg_index 2610
    indexrelid:oid indrelid:oid indnatts:int2 indnkeyatts:int2 indisunique:bool indnullsnotdistinct:bool
    indisprimary:bool indisexclusion:bool indimmediate:bool indisclustered:bool indisvalid:bool indcheckxmin:bool
    indisready:bool indislive:bool indisreplident:bool indkey:int2vector indcollation:oidvector indclass:oidvector
    indoption:int2vector indexprs:pg_node_tree? indpred:pg_node_tree?
pg_constraint 2606
    oid:oid conname:name connamespace:oid contype:char condeferrable:bool condeferred:bool
    conenforced:bool convalidated:bool
    conrelid:oid contypid:oid conindid:oid conparentid:oid confrelid:oid confupdtype:char confdeltype:char
    confmatchtype:char conislocal:bool coninhcount:int4 connoinherit:bool conkey:int2[]? confkey:int2[]?
    conpfeqop:oid[]? conppeqop:oid[]? conffeqop:oid[]? confdelsetcols:int2[]? conexclop:oid[]? conbin:pg_node_tree?
pg_proc 1255
    oid:oid proname:name pronamespace:oid proowner:oid prolang:oid procost:float4 prorows:float4 provariadic:oid
    prosupport:regproc prokind:char prosecdef:bool proleakproof:bool proisstrict:bool proretset:bool
    provolatile:char proparallel:char pronargs:int2 pronargdefaults:int2 prorettype:oid proargtypes:oidvector
    proallargtypes:oid[]? proargmodes:char[]? proargnames:text[]? proargdefaults:pg_node_tree? protrftypes:oid[]?
    prosrc:text probin:text? prosqlbody:pg_node_tree? proconfig:text[]? proacl:aclitem[]?
pg_database 1262
    oid:oid datname:name datdba:oid encoding:int4 datlocprovider:char datistemplate:bool datallowconn:bool
    datconnlimit:int4 datfrozenxid:xid datminmxid:xid dattablespace:oid datcollate:text datctype:text
    daticulocale:text? datcollversion:text? datacl:aclitem[]?
pg_roles 0
    rolname:name? rolsuper:bool? rolinherit:bool? rolcreaterole:bool? rolcreatedb:bool? rolcanlogin:bool?
    rolreplication:bool? rolconnlimit:int4? rolpassword:text? rolvaliduntil:timestamptz? rolbypassrls:bool?
    rolconfig:text[]? oid:oid?
pg_user 0
    usename:name? usesysid:oid? usecreatedb:bool? usesuper:bool? userepl:bool? usebypassrls:bool? passwd:text?
    valuntil:timestamptz? useconfig:text[]?
pg_authid 1260
    oid:oid rolname:name rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool rolcanlogin:bool
    rolreplication:bool rolbypassrls:bool rolconnlimit:int4 rolpassword:text? rolvaliduntil:timestamptz?
pg_shadow 0
    usename:name? usesysid:oid? usecreatedb:bool? usesuper:bool? userepl:bool? usebypassrls:bool? passwd:text?
    valuntil:timestamptz? useconfig:text[]?
pg_group 0
    groname:name? grosysid:oid? grolist:oid[]?
pg_auth_members 1261
    roleid:oid member:oid grantor:oid admin_option:bool
pg_settings 0
    name:text? setting:text? unit:text? category:text? short_desc:text? extra_desc:text? context:text? vartype:text?
    source:text? min_val:text? max_val:text? enumvals:text[]? boot_val:text? reset_val:text? sourcefile:text?
    sourceline:int4? pending_restart:bool?
pg_description 2609
    objoid:oid classoid:oid objsubid:int4 description:text
pg_shdescription 2396
    objoid:oid classoid:oid description:text
pg_am 2601
    oid:oid amname:name amhandler:regproc amtype:char
pg_opclass 2616
    oid:oid opcmethod:oid opcname:name opcnamespace:oid opcowner:oid opcfamily:oid opcintype:oid opcdefault:bool
    opckeytype:oid
pg_operator 2617
    oid:oid oprname:name oprnamespace:oid oprowner:oid oprkind:char oprcanmerge:bool oprcanhash:bool oprleft:oid
    oprright:oid oprresult:oid oprcom:oid oprnegate:oid oprcode:regproc oprrest:regproc oprjoin:regproc
pg_cast 2605
    oid:oid castsource:oid casttarget:oid castfunc:oid castcontext:char castmethod:char
pg_opfamily 2753
    oid:oid opfmethod:oid opfname:name opfnamespace:oid opfowner:oid
pg_amop 2602
    oid:oid amopfamily:oid amoplefttype:oid amoprighttype:oid amopstrategy:int2 amoppurpose:char amopopr:oid
    amopmethod:oid amopsortfamily:oid
pg_amproc 2603
    oid:oid amprocfamily:oid amproclefttype:oid amprocrighttype:oid amprocnum:int2 amproc:regproc
pg_collation 3456
    oid:oid collname:name collnamespace:oid collowner:oid collprovider:char collisdeterministic:bool
    collencoding:int4 collcollate:text? collctype:text? colliculocale:text? collversion:text?
pg_depend 2608
    classid:oid objid:oid objsubid:int4 refclassid:oid refobjid:oid refobjsubid:int4 deptype:char
pg_views 0
    schemaname:name? viewname:name? viewowner:name? definition:text?
pg_matviews 0
    schemaname:name? matviewname:name? matviewowner:name? tablespace:name? hasindexes:bool? ispopulated:bool?
    definition:text?
pg_tables 0
    schemaname:name? tablename:name? tableowner:name? tablespace:name? hasindexes:bool? hasrules:bool?
    hastriggers:bool? rowsecurity:bool?
pg_indexes 0
    schemaname:name? tablename:name? indexname:name? tablespace:name? indexdef:text?
pg_sequence 2224
    seqrelid:oid seqtypid:oid seqstart:int8 seqincrement:int8 seqmax:int8 seqmin:int8 seqcache:int8 seqcycle:bool
pg_sequences 0
    schemaname:name? sequencename:name? sequenceowner:name? data_type:regtype? start_value:int8? min_value:int8?
    max_value:int8? increment_by:int8? cycle:bool? cache_size:int8? last_value:int8?
pg_rewrite 2618
    oid:oid rulename:name ev_class:oid ev_type:char ev_enabled:char is_instead:bool ev_qual:pg_node_tree
    ev_action:pg_node_tree
pg_stat_activity 0
    datid:oid? datname:name? pid:int4? leader_pid:int4? usesysid:oid? usename:name? application_name:text?
    client_addr:inet? client_hostname:text? client_port:int4? backend_start:timestamptz? xact_start:timestamptz?
    query_start:timestamptz? state_change:timestamptz? wait_event_type:text? wait_event:text? state:text?
    backend_xid:xid? backend_xmin:xid? query_id:int8? query:text? backend_type:text?
pg_locks 0
    locktype:text? database:oid? relation:oid? page:int4? tuple:int2? virtualxid:text? transactionid:xid?
    classid:oid? objid:oid? objsubid:int2? virtualtransaction:text? pid:int4? mode:text? granted:bool?
    fastpath:bool? waitstart:timestamptz?
pg_stat_user_tables 0
    relid:oid? schemaname:name? relname:name? seq_scan:int8? seq_tup_read:int8? idx_scan:int8? idx_tup_fetch:int8?
    n_tup_ins:int8? n_tup_upd:int8? n_tup_del:int8? n_tup_hot_upd:int8? n_live_tup:int8? n_dead_tup:int8?
    n_mod_since_analyze:int8? n_ins_since_vacuum:int8? last_vacuum:timestamptz? last_autovacuum:timestamptz?
    last_analyze:timestamptz? last_autoanalyze:timestamptz? vacuum_count:int8? autovacuum_count:int8?
    analyze_count:int8? autoanalyze_count:int8?
pg_stat_all_tables 0
    relid:oid? schemaname:name? relname:name? seq_scan:int8? seq_tup_read:int8? idx_scan:int8? idx_tup_fetch:int8?
    n_tup_ins:int8? n_tup_upd:int8? n_tup_del:int8? n_tup_hot_upd:int8? n_live_tup:int8? n_dead_tup:int8?
    n_mod_since_analyze:int8? n_ins_since_vacuum:int8? last_vacuum:timestamptz? last_autovacuum:timestamptz?
    last_analyze:timestamptz? last_autoanalyze:timestamptz? vacuum_count:int8? autovacuum_count:int8?
    analyze_count:int8? autoanalyze_count:int8?
pg_statio_user_tables 0
    relid:oid? schemaname:name? relname:name? heap_blks_read:int8? heap_blks_hit:int8? idx_blks_read:int8?
    idx_blks_hit:int8? toast_blks_read:int8? toast_blks_hit:int8? tidx_blks_read:int8? tidx_blks_hit:int8?
pg_statio_all_tables 0
    relid:oid? schemaname:name? relname:name? heap_blks_read:int8? heap_blks_hit:int8? idx_blks_read:int8?
    idx_blks_hit:int8? toast_blks_read:int8? toast_blks_hit:int8? tidx_blks_read:int8? tidx_blks_hit:int8?
pg_prepared_statements 0
    name:text? statement:text? prepare_time:timestamptz? parameter_types:regtype[]? from_sql:bool? generic_plans:int8?
    custom_plans:int8?
pg_cursors 0
    name:text? statement:text? is_holdable:bool? is_binary:bool? is_scrollable:bool? creation_time:timestamptz?
pg_tablespace 1213
    oid:oid spcname:name spcowner:oid spcacl:aclitem[]? spcoptions:text[]?
pg_language 2612
    oid:oid lanname:name lanowner:oid lanispl:bool lanpltrusted:bool lanplcallfoid:oid laninline:oid
    lanvalidator:oid lanacl:aclitem[]?
pg_enum 3501
    oid:oid enumtypid:oid enumsortorder:float4 enumlabel:name
"""

#: Relations of `pg_catalog` about what there is none of here, so that they have no rows.
EMPTY = """
pg_parameter_acl 6243
    oid:oid parname:text paracl:aclitem[]
pg_policy 3256
    oid:oid polname:name polrelid:oid polcmd:char polpermissive:bool polroles:oid[] polqual:pg_node_tree?
    polwithcheck:pg_node_tree?
pg_policies 0
    schemaname:name? tablename:name? policyname:name? permissive:text? roles:name[]? cmd:text? qual:text?
    with_check:text?
pg_trigger 2620
    oid:oid tgrelid:oid tgparentid:oid tgname:name tgfoid:oid tgtype:int2 tgenabled:char tgisinternal:bool
    tgconstrrelid:oid tgconstrindid:oid tgconstraint:oid tgdeferrable:bool tginitdeferred:bool tgnargs:int2
    tgattr:int2vector tgargs:bytea tgqual:pg_node_tree? tgoldtable:name? tgnewtable:name?
pg_inherits 2611
    inhrelid:oid inhparent:oid inhseqno:int4 inhdetachpending:bool
pg_publication 6104
    oid:oid pubname:name pubowner:oid puballtables:bool pubinsert:bool pubupdate:bool pubdelete:bool
    pubtruncate:bool pubviaroot:bool
pg_publication_rel 6106
    oid:oid prpubid:oid prrelid:oid prqual:pg_node_tree? prattrs:int2vector?
pg_publication_namespace 6237
    oid:oid pnpubid:oid pnnspid:oid
pg_publication_tables 0
    pubname:name? schemaname:name? tablename:name? attnames:name[]? rowfilter:text?
pg_subscription 6100
    oid:oid subdbid:oid subskiplsn:pg_lsn subname:name subowner:oid subenabled:bool subbinary:bool substream:bool
    subtwophasestate:char subdisableonerr:bool subconninfo:text subslotname:name? subsynccommit:text
    subpublications:text[]
pg_statistic_ext 3381
    oid:oid stxrelid:oid stxname:name stxnamespace:oid stxowner:oid stxstattarget:int4 stxkeys:int2vector
    stxkind:char[] stxexprs:pg_node_tree?
pg_range 3541
    rngtypid:oid rngsubtype:oid rngmultitypid:oid rngcollation:oid rngsubopc:oid rngcanonical:regproc
    rngsubdiff:regproc
pg_foreign_table 3118
    ftrelid:oid ftserver:oid ftoptions:text[]?
pg_foreign_server 1417
    oid:oid srvname:name srvowner:oid srvfdw:oid srvtype:text? srvversion:text? srvacl:aclitem[]? srvoptions:text[]?
pg_foreign_data_wrapper 2328
    oid:oid fdwname:name fdwowner:oid fdwhandler:oid fdwvalidator:oid fdwacl:aclitem[]? fdwoptions:text[]?
pg_user_mapping 1418
    oid:oid umuser:oid umserver:oid umoptions:text[]?
pg_user_mappings 0
    umid:oid? srvid:oid? srvname:name? umuser:oid? usename:name? umoptions:text[]?
pg_event_trigger 3466
    oid:oid evtname:name evtevent:name evtowner:oid evtfoid:oid evtenabled:char evttags:text[]?
pg_extension 3079
    oid:oid extname:name extowner:oid extnamespace:oid extrelocatable:bool extversion:text extconfig:oid[]?
    extcondition:text[]?
pg_partitioned_table 3350
    partrelid:oid partstrat:char partnatts:int2 partdefid:oid partattrs:int2vector partclass:oidvector
    partcollation:oidvector partexprs:pg_node_tree?
pg_largeobject_metadata 2995
    oid:oid lomowner:oid lomacl:aclitem[]?
pg_db_role_setting 2964
    setdatabase:oid setrole:oid setconfig:text[]?
pg_default_acl 826
    oid:oid defaclrole:oid defaclnamespace:oid defaclobjtype:char defaclacl:aclitem[]
pg_seclabel 3596
    objoid:oid classoid:oid objsubid:int4 provider:text label:text
pg_seclabels 0
    objoid:oid? classoid:oid? objsubid:int4? objtype:text? objnamespace:oid? objname:text? provider:text?
    label:text?
pg_shseclabel 3592
    objoid:oid classoid:oid provider:text label:text
pg_rules 0
    schemaname:name? tablename:name? rulename:name? definition:text?
pg_prepared_xacts 0
    transaction:xid? gid:text? prepared:timestamptz? owner:name? database:name?
pg_conversion 2607
    oid:oid conname:name connamespace:oid conowner:oid conforencoding:int4 contoencoding:int4 conproc:regproc
    condefault:bool
pg_transform 3576
    oid:oid trftype:oid trflang:oid trffromsql:regproc trftosql:regproc
pg_ts_config 3602
    oid:oid cfgname:name cfgnamespace:oid cfgowner:oid cfgparser:oid
pg_ts_dict 3600
    oid:oid dictname:name dictnamespace:oid dictowner:oid dicttemplate:oid dictinitoption:text?
pg_ts_parser 3601
    oid:oid prsname:name prsnamespace:oid prsstart:regproc prstoken:regproc prsend:regproc prsheadline:regproc
    prslextype:regproc
pg_ts_template 3764
    oid:oid tmplname:name tmplnamespace:oid tmplinit:regproc tmpllexize:regproc
pg_init_privs 3394
    objoid:oid classoid:oid objsubid:int4 privtype:char initprivs:aclitem[]
pg_shdepend 1214
    dbid:oid classid:oid objid:oid objsubid:int4 refclassid:oid refobjid:oid deptype:char
"""

#: Relations of `information_schema`; its domains are the types below them.
INFORMATION = """
schemata 0
    catalog_name:name? schema_name:name? schema_owner:name? default_character_set_catalog:name?
    default_character_set_schema:name? default_character_set_name:name? sql_path:text?
tables 0
    table_catalog:name? table_schema:name? table_name:name? table_type:text? self_referencing_column_name:name?
    reference_generation:text? user_defined_type_catalog:name? user_defined_type_schema:name?
    user_defined_type_name:name? is_insertable_into:text? is_typed:text? commit_action:text?
columns 0
    table_catalog:name? table_schema:name? table_name:name? column_name:name? ordinal_position:int4?
    column_default:text? is_nullable:text? data_type:text? character_maximum_length:int4?
    character_octet_length:int4? numeric_precision:int4? numeric_precision_radix:int4? numeric_scale:int4?
    datetime_precision:int4? interval_type:text? interval_precision:int4? character_set_catalog:name?
    character_set_schema:name? character_set_name:name? collation_catalog:name? collation_schema:name?
    collation_name:name? domain_catalog:name? domain_schema:name? domain_name:name? udt_catalog:name?
    udt_schema:name? udt_name:name? scope_catalog:name? scope_schema:name? scope_name:name?
    maximum_cardinality:int4? dtd_identifier:name? is_self_referencing:text? is_identity:text?
    identity_generation:text? identity_start:text? identity_increment:text? identity_maximum:text?
    identity_minimum:text? identity_cycle:text? is_generated:text? generation_expression:text? is_updatable:text?
views 0
    table_catalog:name? table_schema:name? table_name:name? view_definition:text? check_option:text?
    is_updatable:text? is_insertable_into:text? is_trigger_updatable:text? is_trigger_deletable:text?
    is_trigger_insertable_into:text?
table_constraints 0
    constraint_catalog:name? constraint_schema:name? constraint_name:name? table_catalog:name? table_schema:name?
    table_name:name? constraint_type:text? is_deferrable:text? initially_deferred:text? enforced:text?
    nulls_distinct:text?
key_column_usage 0
    constraint_catalog:name? constraint_schema:name? constraint_name:name? table_catalog:name? table_schema:name?
    table_name:name? column_name:name? ordinal_position:int4? position_in_unique_constraint:int4?
constraint_column_usage 0
    table_catalog:name? table_schema:name? table_name:name? column_name:name? constraint_catalog:name?
    constraint_schema:name? constraint_name:name?
referential_constraints 0
    constraint_catalog:name? constraint_schema:name? constraint_name:name? unique_constraint_catalog:name?
    unique_constraint_schema:name? unique_constraint_name:name? match_option:text? update_rule:text?
    delete_rule:text?
check_constraints 0
    constraint_catalog:name? constraint_schema:name? constraint_name:name? check_clause:text?
sequences 0
    sequence_catalog:name? sequence_schema:name? sequence_name:name? data_type:text? numeric_precision:int4?
    numeric_precision_radix:int4? numeric_scale:int4? start_value:text? minimum_value:text? maximum_value:text?
    increment:text? cycle_option:text?
character_sets 0
    character_set_catalog:name? character_set_schema:name? character_set_name:name? character_repertoire:name?
    form_of_use:name? default_collate_catalog:name? default_collate_schema:name? default_collate_name:name?
triggers 0
    trigger_catalog:name? trigger_schema:name? trigger_name:name? event_manipulation:text?
    event_object_catalog:name? event_object_schema:name? event_object_table:name? action_order:int4?
    action_condition:text? action_statement:text? action_orientation:text? action_timing:text?
    action_reference_old_table:name? action_reference_new_table:name? action_reference_old_row:name?
    action_reference_new_row:name? created:timestamptz?
domains 0
    domain_catalog:name? domain_schema:name? domain_name:name? data_type:text? character_maximum_length:int4?
    character_octet_length:int4? character_set_catalog:name? character_set_schema:name? character_set_name:name?
    collation_catalog:name? collation_schema:name? collation_name:name? numeric_precision:int4?
    numeric_precision_radix:int4? numeric_scale:int4? datetime_precision:int4? interval_type:text?
    interval_precision:int4? domain_default:text? udt_catalog:name? udt_schema:name? udt_name:name?
    scope_catalog:name? scope_schema:name? scope_name:name? maximum_cardinality:int4? dtd_identifier:name?
table_privileges 0
    grantor:name? grantee:name? table_catalog:name? table_schema:name? table_name:name? privilege_type:text?
    is_grantable:text? with_hierarchy:text?
role_table_grants 0
    grantor:name? grantee:name? table_catalog:name? table_schema:name? table_name:name? privilege_type:text?
    is_grantable:text? with_hierarchy:text?
enabled_roles 0
    role_name:name?
applicable_roles 0
    grantee:name? role_name:name? is_grantable:text?
information_schema_catalog_name 0
    catalog_name:name?
"""
