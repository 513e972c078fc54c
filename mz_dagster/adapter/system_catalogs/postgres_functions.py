"""Functions that PostgreSQL 15's catalogs name: those of operators, casts, indexes and types; aggregates.

They say how PostgreSQL carries out what there is here, too; but for aggregates nobody calls them by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: Each its object id, its name, the type of its result and those of its arguments, then `s` if it is stable, not
#: immutable, `v` if it is volatile, `n` if it is not strict, and `a` or `w` of an aggregate or a window function.
_FUNCTIONS = """
3:heap_tableam_handler:table_am_handler:internal:v 31:byteaout:cstring:bytea 33:charout:cstring:char
34:namein:name:cstring 35:nameout:cstring:name 38:int2in:int2:cstring 39:int2out:cstring:int2
40:int2vectorin:int2vector:cstring 41:int2vectorout:cstring:int2vector 42:int4in:int4:cstring 43:int4out:cstring:int4
44:regprocin:regproc:cstring:s 45:regprocout:cstring:regproc:s 46:textin:text:cstring 47:textout:cstring:text
50:xidin:xid:cstring 51:xidout:cstring:xid 54:oidvectorin:oidvector:cstring 55:oidvectorout:cstring:oidvector
56:boollt:bool:bool,bool 57:boolgt:bool:bool,bool 60:booleq:bool:bool,bool 61:chareq:bool:char,char
62:nameeq:bool:name,name 63:int2eq:bool:int2,int2 64:int2lt:bool:int2,int2 65:int4eq:bool:int4,int4
66:int4lt:bool:int4,int4 67:texteq:bool:text,text 70:charne:bool:char,char 72:charle:bool:char,char
73:chargt:bool:char,char 74:charge:bool:char,char 77:int4:int4:char 78:char:char:int4 79:nameregexeq:bool:name,text
84:boolne:bool:bool,bool 101:eqsel:float8:internal,oid,internal,int4:s 102:neqsel:float8:internal,oid,internal,int4:s
103:scalarltsel:float8:internal,oid,internal,int4:s 104:scalargtsel:float8:internal,oid,internal,int4:s
105:eqjoinsel:float8:internal,oid,internal,int2,internal:s 106:neqjoinsel:float8:internal,oid,internal,int2,internal:s
107:scalarltjoinsel:float8:internal,oid,internal,int2,internal:s
108:scalargtjoinsel:float8:internal,oid,internal,int2,internal:s 109:unknownin:unknown:cstring
110:unknownout:cstring:unknown 141:int4mul:int4:int4,int4 144:int4ne:bool:int4,int4 145:int2ne:bool:int2,int2
146:int2gt:bool:int2,int2 147:int4gt:bool:int4,int4 148:int2le:bool:int2,int2 149:int4le:bool:int4,int4
150:int4ge:bool:int4,int4 151:int2ge:bool:int2,int2 152:int2mul:int2:int2,int2 153:int2div:int2:int2,int2
154:int4div:int4:int4,int4 155:int2mod:int2:int2,int2 156:int4mod:int4:int4,int4 157:textne:bool:text,text
158:int24eq:bool:int2,int4 159:int42eq:bool:int4,int2 160:int24lt:bool:int2,int4 161:int42lt:bool:int4,int2
162:int24gt:bool:int2,int4 163:int42gt:bool:int4,int2 164:int24ne:bool:int2,int4 165:int42ne:bool:int4,int2
166:int24le:bool:int2,int4 167:int42le:bool:int4,int2 168:int24ge:bool:int2,int4 169:int42ge:bool:int4,int2
170:int24mul:int4:int2,int4 171:int42mul:int4:int4,int2 172:int24div:int4:int2,int4 173:int42div:int4:int4,int2
176:int2pl:int2:int2,int2 177:int4pl:int4:int4,int4 178:int24pl:int4:int2,int4 179:int42pl:int4:int4,int2
180:int2mi:int2:int2,int2 181:int4mi:int4:int4,int4 182:int24mi:int4:int2,int4 183:int42mi:int4:int4,int2
184:oideq:bool:oid,oid 185:oidne:bool:oid,oid 195:pg_node_tree_in:pg_node_tree:cstring
196:pg_node_tree_out:cstring:pg_node_tree 197:pg_node_tree_recv:pg_node_tree:internal:s
198:pg_node_tree_send:bytea:pg_node_tree:s 200:float4in:float4:cstring 201:float4out:cstring:float4
202:float4mul:float4:float4,float4 203:float4div:float4:float4,float4 204:float4pl:float4:float4,float4
205:float4mi:float4:float4,float4 206:float4um:float4:float4 207:float4abs:float4:float4 212:int4um:int4:int4
213:int2um:int2:int2 214:float8in:float8:cstring 215:float8out:cstring:float8 216:float8mul:float8:float8,float8
217:float8div:float8:float8,float8 218:float8pl:float8:float8,float8 219:float8mi:float8:float8,float8
220:float8um:float8:float8 221:float8abs:float8:float8 230:dsqrt:float8:float8 231:dcbrt:float8:float8
232:dpow:float8:float8,float8 235:float8:float8:int2 236:float4:float4:int2 237:int2:int2:float8 238:int2:int2:float4
240:nameeqtext:bool:name,text 241:namelttext:bool:name,text 242:nameletext:bool:name,text
243:namegetext:bool:name,text 244:namegttext:bool:name,text 245:namenetext:bool:name,text
246:btnametextcmp:int4:name,text 247:texteqname:bool:text,name 248:textltname:bool:text,name
249:textlename:bool:text,name 250:textgename:bool:text,name 251:textgtname:bool:text,name
252:textnename:bool:text,name 253:bttextnamecmp:int4:text,name 267:table_am_handler_in:table_am_handler:cstring:n
268:table_am_handler_out:cstring:table_am_handler 279:float48mul:float8:float4,float8
280:float48div:float8:float4,float8 281:float48pl:float8:float4,float8 282:float48mi:float8:float4,float8
283:float84mul:float8:float8,float4 284:float84div:float8:float8,float4 285:float84pl:float8:float8,float4
286:float84mi:float8:float8,float4 287:float4eq:bool:float4,float4 288:float4ne:bool:float4,float4
289:float4lt:bool:float4,float4 290:float4le:bool:float4,float4 291:float4gt:bool:float4,float4
292:float4ge:bool:float4,float4 293:float8eq:bool:float8,float8 294:float8ne:bool:float8,float8
295:float8lt:bool:float8,float8 296:float8le:bool:float8,float8 297:float8gt:bool:float8,float8
298:float8ge:bool:float8,float8 299:float48eq:bool:float4,float8 300:float48ne:bool:float4,float8
301:float48lt:bool:float4,float8 302:float48le:bool:float4,float8 303:float48gt:bool:float4,float8
304:float48ge:bool:float4,float8 305:float84eq:bool:float8,float4 306:float84ne:bool:float8,float4
307:float84lt:bool:float8,float4 308:float84le:bool:float8,float4 309:float84gt:bool:float8,float4
310:float84ge:bool:float8,float4 311:float8:float8:float4 312:float4:float4:float8 313:int4:int4:int2
314:int2:int2:int4 316:float8:float8:int4 317:int4:int4:float8 318:float4:float4:int4 319:int4:int4:float4
321:json_in:json:cstring 322:json_out:cstring:json 323:json_recv:json:internal 324:json_send:bytea:json
326:index_am_handler_in:index_am_handler:cstring:n 327:index_am_handler_out:cstring:index_am_handler
330:bthandler:index_am_handler:internal:v 336:scalarlesel:float8:internal,oid,internal,int4:s
337:scalargesel:float8:internal,oid,internal,int4:s 350:btint2cmp:int4:int2,int2 351:btint4cmp:int4:int4,int4
354:btfloat4cmp:int4:float4,float4 355:btfloat8cmp:int4:float8,float8 356:btoidcmp:int4:oid,oid
358:btcharcmp:int4:char,char 359:btnamecmp:int4:name,name 360:bttextcmp:int4:text,text
378:array_append:anycompatiblearray:anycompatiblearray,anycompatible:n
379:array_prepend:anycompatiblearray:anycompatible,anycompatiblearray:n 382:btarraycmp:int4:anyarray,anyarray
383:array_cat:anycompatiblearray:anycompatiblearray,anycompatiblearray:n
386:scalarlejoinsel:float8:internal,oid,internal,int2,internal:s 390:array_ne:bool:anyarray,anyarray
391:array_lt:bool:anyarray,anyarray 392:array_gt:bool:anyarray,anyarray 393:array_le:bool:anyarray,anyarray
396:array_ge:bool:anyarray,anyarray 398:scalargejoinsel:float8:internal,oid,internal,int2,internal:s
401:text:text:bpchar 406:text:text:name 407:name:name:text 408:bpchar:bpchar:name 409:name:name:bpchar
460:int8in:int8:cstring 461:int8out:cstring:int8 462:int8um:int8:int8 463:int8pl:int8:int8,int8
464:int8mi:int8:int8,int8 465:int8mul:int8:int8,int8 466:int8div:int8:int8,int8 467:int8eq:bool:int8,int8
468:int8ne:bool:int8,int8 469:int8lt:bool:int8,int8 470:int8gt:bool:int8,int8 471:int8le:bool:int8,int8
472:int8ge:bool:int8,int8 474:int84eq:bool:int8,int4 475:int84ne:bool:int8,int4 476:int84lt:bool:int8,int4
477:int84gt:bool:int8,int4 478:int84le:bool:int8,int4 479:int84ge:bool:int8,int4 480:int4:int4:int8 481:int8:int8:int4
482:float8:float8:int8 483:int8:int8:float8 652:float4:float4:int8 653:int8:int8:float4 655:namelt:bool:name,name
656:namele:bool:name,name 657:namegt:bool:name,name 658:namege:bool:name,name 659:namene:bool:name,name
668:bpchar:bpchar:bpchar,int4,bool 669:varchar:varchar:varchar,int4,bool 714:int2:int2:int8 716:oidlt:bool:oid,oid
717:oidle:bool:oid,oid 740:text_lt:bool:text,text 741:text_le:bool:text,text 742:text_gt:bool:text,text
743:text_ge:bool:text,text 744:array_eq:bool:anyarray,anyarray 750:array_in:anyarray:cstring,oid,int4:s
751:array_out:cstring:anyarray:s 754:int8:int8:int2 837:int82pl:int8:int8,int2 838:int82mi:int8:int8,int2
839:int82mul:int8:int8,int2 840:int82div:int8:int8,int2 841:int28pl:int8:int2,int8 842:btint8cmp:int4:int8,int8
850:textlike:bool:text,text 851:textnlike:bool:text,text 852:int48eq:bool:int4,int8 853:int48ne:bool:int4,int8
854:int48lt:bool:int4,int8 855:int48gt:bool:int4,int8 856:int48le:bool:int4,int8 857:int48ge:bool:int4,int8
858:namelike:bool:name,text 859:namenlike:bool:name,text 860:bpchar:bpchar:char 942:int28mi:int8:int2,int8
943:int28mul:int8:int2,int8 944:char:char:text 945:int8mod:int8:int8,int8 946:text:text:char
948:int28div:int8:int2,int8 1031:aclitemin:aclitem:cstring:s 1032:aclitemout:cstring:aclitem:s
1044:bpcharin:bpchar:cstring,oid,int4 1045:bpcharout:cstring:bpchar 1046:varcharin:varchar:cstring,oid,int4
1047:varcharout:cstring:varchar 1048:bpchareq:bool:bpchar,bpchar 1049:bpcharlt:bool:bpchar,bpchar
1050:bpcharle:bool:bpchar,bpchar 1051:bpchargt:bool:bpchar,bpchar 1052:bpcharge:bool:bpchar,bpchar
1053:bpcharne:bool:bpchar,bpchar 1078:bpcharcmp:int4:bpchar,bpchar 1084:date_in:date:cstring:s
1085:date_out:cstring:date:s 1086:date_eq:bool:date,date 1087:date_lt:bool:date,date 1088:date_le:bool:date,date
1089:date_gt:bool:date,date 1090:date_ge:bool:date,date 1091:date_ne:bool:date,date 1092:date_cmp:int4:date,date
1102:time_lt:bool:time,time 1103:time_le:bool:time,time 1104:time_gt:bool:time,time 1105:time_ge:bool:time,time
1106:time_ne:bool:time,time 1107:time_cmp:int4:time,time 1140:date_mi:int4:date,date 1141:date_pli:date:date,int4
1142:date_mii:date:date,int4 1143:time_in:time:cstring,oid,int4:s 1144:time_out:cstring:time
1145:time_eq:bool:time,time 1150:timestamptz_in:timestamptz:cstring,oid,int4:s
1151:timestamptz_out:cstring:timestamptz:s 1152:timestamptz_eq:bool:timestamptz,timestamptz
1153:timestamptz_ne:bool:timestamptz,timestamptz 1154:timestamptz_lt:bool:timestamptz,timestamptz
1155:timestamptz_le:bool:timestamptz,timestamptz 1156:timestamptz_ge:bool:timestamptz,timestamptz
1157:timestamptz_gt:bool:timestamptz,timestamptz 1160:interval_in:interval:cstring,oid,int4:s
1161:interval_out:cstring:interval:s 1162:interval_eq:bool:interval,interval 1163:interval_ne:bool:interval,interval
1164:interval_lt:bool:interval,interval 1165:interval_le:bool:interval,interval
1166:interval_ge:bool:interval,interval 1167:interval_gt:bool:interval,interval 1168:interval_um:interval:interval
1169:interval_pl:interval:interval,interval 1170:interval_mi:interval:interval,interval
1174:timestamptz:timestamptz:date:s 1178:date:date:timestamptz:s 1188:timestamptz_mi:interval:timestamptz,timestamptz
1189:timestamptz_pl_interval:timestamptz:timestamptz,interval:s
1190:timestamptz_mi_interval:timestamptz:timestamptz,interval:s 1200:interval:interval:interval,int4
1230:int8abs:int8:int8 1238:texticregexeq:bool:text,text 1239:texticregexne:bool:text,text
1240:nameicregexeq:bool:name,text 1241:nameicregexne:bool:name,text 1242:boolin:bool:cstring 1243:boolout:cstring:bool
1244:byteain:bytea:cstring 1245:charin:char:cstring 1246:charlt:bool:char,char 1251:int4abs:int4:int4
1252:nameregexne:bool:name,text 1253:int2abs:int2:int2 1254:textregexeq:bool:text,text 1256:textregexne:bool:text,text
1258:textcat:text:text,text 1272:datetime_pl:timestamp:date,time 1274:int84pl:int8:int8,int4
1275:int84mi:int8:int8,int4 1276:int84mul:int8:int8,int4 1277:int84div:int8:int8,int4 1278:int48pl:int8:int4,int8
1279:int48mi:int8:int4,int8 1280:int48mul:int8:int4,int8 1281:int48div:int8:int4,int8 1287:oid:oid:int8
1288:int8:int8:oid 1296:timedate_pl:timestamp:time,date 1297:datetimetz_pl:timestamptz:date,timetz
1298:timetzdate_pl:timestamptz:timetz,date 1312:timestamp_in:timestamp:cstring,oid,int4:s
1313:timestamp_out:cstring:timestamp:s 1314:timestamptz_cmp:int4:timestamptz,timestamptz
1315:interval_cmp:int4:interval,interval 1316:time:time:timestamp 1326:interval_div:interval:interval,float8
1350:timetz_in:timetz:cstring,oid,int4:s 1351:timetz_out:cstring:timetz 1352:timetz_eq:bool:timetz,timetz
1353:timetz_ne:bool:timetz,timetz 1354:timetz_lt:bool:timetz,timetz 1355:timetz_le:bool:timetz,timetz
1356:timetz_ge:bool:timetz,timetz 1357:timetz_gt:bool:timetz,timetz 1358:timetz_cmp:int4:timetz,timetz
1370:interval:interval:time 1388:timetz:timetz:timestamptz:s 1400:name:name:varchar 1401:varchar:varchar:name
1419:time:time:interval 1618:interval_mul:interval:interval,float8 1624:mul_d_interval:interval:float8,interval
1631:bpcharlike:bool:bpchar,text 1632:bpcharnlike:bool:bpchar,text 1633:texticlike:bool:text,text
1634:texticnlike:bool:text,text 1635:nameiclike:bool:name,text 1636:nameicnlike:bool:name,text 1638:oidgt:bool:oid,oid
1639:oidge:bool:oid,oid 1656:bpcharicregexeq:bool:bpchar,text 1657:bpcharicregexne:bool:bpchar,text
1658:bpcharregexeq:bool:bpchar,text 1659:bpcharregexne:bool:bpchar,text 1660:bpchariclike:bool:bpchar,text
1661:bpcharicnlike:bool:bpchar,text 1690:time_mi_time:interval:time,time 1691:boolle:bool:bool,bool
1692:boolge:bool:bool,bool 1693:btboolcmp:int4:bool,bool 1701:numeric_in:numeric:cstring,oid,int4
1702:numeric_out:cstring:numeric 1703:numeric:numeric:numeric,int4 1704:numeric_abs:numeric:numeric
1718:numeric_eq:bool:numeric,numeric 1719:numeric_ne:bool:numeric,numeric 1720:numeric_gt:bool:numeric,numeric
1721:numeric_ge:bool:numeric,numeric 1722:numeric_lt:bool:numeric,numeric 1723:numeric_le:bool:numeric,numeric
1724:numeric_add:numeric:numeric,numeric 1725:numeric_sub:numeric:numeric,numeric
1726:numeric_mul:numeric:numeric,numeric 1727:numeric_div:numeric:numeric,numeric
1729:numeric_mod:numeric:numeric,numeric 1739:numeric_power:numeric:numeric,numeric 1740:numeric:numeric:int4
1742:numeric:numeric:float4 1743:numeric:numeric:float8 1744:int4:int4:numeric 1745:float4:float4:numeric
1746:float8:float8:numeric 1747:time_pl_interval:time:time,interval 1748:time_mi_interval:time:time,interval
1749:timetz_pl_interval:timetz:timetz,interval 1750:timetz_mi_interval:timetz:timetz,interval
1769:numeric_cmp:int4:numeric,numeric 1771:numeric_uminus:numeric:numeric 1779:int8:int8:numeric
1781:numeric:numeric:int8 1782:numeric:numeric:int2 1783:int2:int2:numeric 1798:oidin:oid:cstring
1799:oidout:cstring:oid 1814:iclikesel:float8:internal,oid,internal,int4:s
1815:icnlikesel:float8:internal,oid,internal,int4:s 1816:iclikejoinsel:float8:internal,oid,internal,int2,internal:s
1817:icnlikejoinsel:float8:internal,oid,internal,int2,internal:s 1818:regexeqsel:float8:internal,oid,internal,int4:s
1819:likesel:float8:internal,oid,internal,int4:s 1820:icregexeqsel:float8:internal,oid,internal,int4:s
1821:regexnesel:float8:internal,oid,internal,int4:s 1822:nlikesel:float8:internal,oid,internal,int4:s
1823:icregexnesel:float8:internal,oid,internal,int4:s 1824:regexeqjoinsel:float8:internal,oid,internal,int2,internal:s
1825:likejoinsel:float8:internal,oid,internal,int2,internal:s
1826:icregexeqjoinsel:float8:internal,oid,internal,int2,internal:s
1827:regexnejoinsel:float8:internal,oid,internal,int2,internal:s
1828:nlikejoinsel:float8:internal,oid,internal,int2,internal:s
1829:icregexnejoinsel:float8:internal,oid,internal,int2,internal:s 1848:interval_pl_time:time:interval,time
1850:int28eq:bool:int2,int8 1851:int28ne:bool:int2,int8 1852:int28lt:bool:int2,int8 1853:int28gt:bool:int2,int8
1854:int28le:bool:int2,int8 1855:int28ge:bool:int2,int8 1856:int82eq:bool:int8,int2 1857:int82ne:bool:int8,int2
1858:int82lt:bool:int8,int2 1859:int82gt:bool:int8,int2 1860:int82le:bool:int8,int2 1861:int82ge:bool:int8,int2
1892:int2and:int2:int2,int2 1893:int2or:int2:int2,int2 1894:int2xor:int2:int2,int2 1895:int2not:int2:int2
1896:int2shl:int2:int2,int4 1897:int2shr:int2:int2,int4 1898:int4and:int4:int4,int4 1899:int4or:int4:int4,int4
1900:int4xor:int4:int4,int4 1901:int4not:int4:int4 1902:int4shl:int4:int4,int4 1903:int4shr:int4:int4,int4
1904:int8and:int8:int8,int8 1905:int8or:int8:int8,int8 1906:int8xor:int8:int8,int8 1907:int8not:int8:int8
1908:int8shl:int8:int8,int4 1909:int8shr:int8:int8,int4 1910:int8up:int8:int8 1911:int2up:int2:int2
1912:int4up:int4:int4 1913:float4up:float4:float4 1914:float8up:float8:float8 1915:numeric_uplus:numeric:numeric
1948:byteaeq:bool:bytea,bytea 1949:bytealt:bool:bytea,bytea 1950:byteale:bool:bytea,bytea
1951:byteagt:bool:bytea,bytea 1952:byteage:bool:bytea,bytea 1953:byteane:bool:bytea,bytea
1954:byteacmp:int4:bytea,bytea 1961:timestamp:timestamp:timestamp,int4 1967:timestamptz:timestamptz:timestamptz,int4
1968:time:time:time,int4 1969:timetz:timetz:timetz,int4 2011:byteacat:bytea:bytea,bytea 2019:time:time:timestamptz:s
2024:timestamp:timestamp:date 2027:timestamp:timestamp:timestamptz:s 2028:timestamptz:timestamptz:timestamp:s
2029:date:date:timestamp 2031:timestamp_mi:interval:timestamp,timestamp
2032:timestamp_pl_interval:timestamp:timestamp,interval 2033:timestamp_mi_interval:timestamp:timestamp,interval
2045:timestamp_cmp:int4:timestamp,timestamp 2046:time:time:timetz 2047:timetz:timetz:time:s
2050:max:anyarray:anyarray:na 2051:min:anyarray:anyarray:na 2052:timestamp_eq:bool:timestamp,timestamp
2053:timestamp_ne:bool:timestamp,timestamp 2054:timestamp_lt:bool:timestamp,timestamp
2055:timestamp_le:bool:timestamp,timestamp 2056:timestamp_ge:bool:timestamp,timestamp
2057:timestamp_gt:bool:timestamp,timestamp 2071:date_pl_interval:timestamp:date,interval
2072:date_mi_interval:timestamp:date,interval 2100:avg:numeric:int8:na 2101:avg:numeric:int4:na
2102:avg:numeric:int2:na 2103:avg:numeric:numeric:na 2104:avg:float8:float4:na 2105:avg:float8:float8:na
2106:avg:interval:interval:na 2107:sum:numeric:int8:na 2108:sum:int8:int4:na 2109:sum:int8:int2:na
2110:sum:float4:float4:na 2111:sum:float8:float8:na 2113:sum:interval:interval:na 2114:sum:numeric:numeric:na
2115:max:int8:int8:na 2116:max:int4:int4:na 2117:max:int2:int2:na 2119:max:float4:float4:na 2120:max:float8:float8:na
2122:max:date:date:na 2123:max:time:time:na 2124:max:timetz:timetz:na 2126:max:timestamp:timestamp:na
2127:max:timestamptz:timestamptz:na 2128:max:interval:interval:na 2129:max:text:text:na 2130:max:numeric:numeric:na
2131:min:int8:int8:na 2132:min:int4:int4:na 2133:min:int2:int2:na 2135:min:float4:float4:na 2136:min:float8:float8:na
2138:min:date:date:na 2139:min:time:time:na 2140:min:timetz:timetz:na 2142:min:timestamp:timestamp:na
2143:min:timestamptz:timestamptz:na 2144:min:interval:interval:na 2145:min:text:text:na 2146:min:numeric:numeric:na
2147:count:int8:any:na 2148:variance:numeric:int8:na 2149:variance:numeric:int4:na 2150:variance:numeric:int2:na
2151:variance:float8:float4:na 2152:variance:float8:float8:na 2153:variance:numeric:numeric:na
2154:stddev:numeric:int8:na 2155:stddev:numeric:int4:na 2156:stddev:numeric:int2:na 2157:stddev:float8:float4:na
2158:stddev:float8:float8:na 2159:stddev:numeric:numeric:na 2188:btint48cmp:int4:int4,int8
2189:btint84cmp:int4:int8,int4 2190:btint24cmp:int4:int2,int4 2191:btint42cmp:int4:int4,int2
2192:btint28cmp:int4:int2,int8 2193:btint82cmp:int4:int8,int2 2194:btfloat48cmp:int4:float4,float8
2195:btfloat84cmp:int4:float8,float4 2212:regprocedurein:regprocedure:cstring:s
2213:regprocedureout:cstring:regprocedure:s 2216:regoperatorin:regoperator:cstring:s
2217:regoperatorout:cstring:regoperator:s 2218:regclassin:regclass:cstring:s 2219:regclassout:cstring:regclass:s
2220:regtypein:regtype:cstring:s 2221:regtypeout:cstring:regtype:s 2236:bit_and:int2:int2:na 2237:bit_or:int2:int2:na
2238:bit_and:int4:int4:na 2239:bit_or:int4:int4:na 2240:bit_and:int8:int8:na 2241:bit_or:int8:int8:na
2244:max:bpchar:bpchar:na 2245:min:bpchar:bpchar:na 2290:record_in:record:cstring,oid,int4:s
2291:record_out:cstring:record:s 2292:cstring_in:cstring:cstring 2293:cstring_out:cstring:cstring
2294:any_in:any:cstring 2295:any_out:cstring:any 2296:anyarray_in:anyarray:cstring
2297:anyarray_out:cstring:anyarray:s 2298:void_in:void:cstring 2299:void_out:cstring:void
2300:trigger_in:trigger:cstring:n 2301:trigger_out:cstring:trigger 2304:internal_in:internal:cstring:n
2305:internal_out:cstring:internal 2312:anyelement_in:anyelement:cstring 2313:anyelement_out:cstring:anyelement
2338:date_lt_timestamp:bool:date,timestamp 2339:date_le_timestamp:bool:date,timestamp
2340:date_eq_timestamp:bool:date,timestamp 2341:date_gt_timestamp:bool:date,timestamp
2342:date_ge_timestamp:bool:date,timestamp 2343:date_ne_timestamp:bool:date,timestamp
2344:date_cmp_timestamp:int4:date,timestamp 2351:date_lt_timestamptz:bool:date,timestamptz:s
2352:date_le_timestamptz:bool:date,timestamptz:s 2353:date_eq_timestamptz:bool:date,timestamptz:s
2354:date_gt_timestamptz:bool:date,timestamptz:s 2355:date_ge_timestamptz:bool:date,timestamptz:s
2356:date_ne_timestamptz:bool:date,timestamptz:s 2357:date_cmp_timestamptz:int4:date,timestamptz:s
2364:timestamp_lt_date:bool:timestamp,date 2365:timestamp_le_date:bool:timestamp,date
2366:timestamp_eq_date:bool:timestamp,date 2367:timestamp_gt_date:bool:timestamp,date
2368:timestamp_ge_date:bool:timestamp,date 2369:timestamp_ne_date:bool:timestamp,date
2370:timestamp_cmp_date:int4:timestamp,date 2377:timestamptz_lt_date:bool:timestamptz,date:s
2378:timestamptz_le_date:bool:timestamptz,date:s 2379:timestamptz_eq_date:bool:timestamptz,date:s
2380:timestamptz_gt_date:bool:timestamptz,date:s 2381:timestamptz_ge_date:bool:timestamptz,date:s
2382:timestamptz_ne_date:bool:timestamptz,date:s 2383:timestamptz_cmp_date:int4:timestamptz,date:s
2400:array_recv:anyarray:internal,oid,int4:s 2401:array_send:bytea:anyarray:s
2402:record_recv:record:internal,oid,int4:s 2403:record_send:bytea:record:s 2404:int2recv:int2:internal
2405:int2send:bytea:int2 2406:int4recv:int4:internal 2407:int4send:bytea:int4 2408:int8recv:int8:internal
2409:int8send:bytea:int8 2410:int2vectorrecv:int2vector:internal 2411:int2vectorsend:bytea:int2vector
2412:bytearecv:bytea:internal 2413:byteasend:bytea:bytea 2414:textrecv:text:internal:s 2415:textsend:bytea:text:s
2416:unknownrecv:unknown:internal 2417:unknownsend:bytea:unknown 2418:oidrecv:oid:internal 2419:oidsend:bytea:oid
2420:oidvectorrecv:oidvector:internal 2421:oidvectorsend:bytea:oidvector 2422:namerecv:name:internal:s
2423:namesend:bytea:name:s 2424:float4recv:float4:internal 2425:float4send:bytea:float4
2426:float8recv:float8:internal 2427:float8send:bytea:float8 2430:bpcharrecv:bpchar:internal,oid,int4:s
2431:bpcharsend:bytea:bpchar:s 2432:varcharrecv:varchar:internal,oid,int4:s 2433:varcharsend:bytea:varchar:s
2434:charrecv:char:internal 2435:charsend:bytea:char 2436:boolrecv:bool:internal 2437:boolsend:bytea:bool
2440:xidrecv:xid:internal 2441:xidsend:bytea:xid 2444:regprocrecv:regproc:internal 2445:regprocsend:bytea:regproc
2446:regprocedurerecv:regprocedure:internal 2447:regproceduresend:bytea:regprocedure
2450:regoperatorrecv:regoperator:internal 2451:regoperatorsend:bytea:regoperator 2452:regclassrecv:regclass:internal
2453:regclasssend:bytea:regclass 2454:regtyperecv:regtype:internal 2455:regtypesend:bytea:regtype
2460:numeric_recv:numeric:internal,oid,int4 2461:numeric_send:bytea:numeric 2468:date_recv:date:internal
2469:date_send:bytea:date 2470:time_recv:time:internal,oid,int4 2471:time_send:bytea:time
2472:timetz_recv:timetz:internal,oid,int4 2473:timetz_send:bytea:timetz
2474:timestamp_recv:timestamp:internal,oid,int4 2475:timestamp_send:bytea:timestamp
2476:timestamptz_recv:timestamptz:internal,oid,int4 2477:timestamptz_send:bytea:timestamptz
2478:interval_recv:interval:internal,oid,int4 2479:interval_send:bytea:interval 2500:cstring_recv:cstring:internal:s
2501:cstring_send:bytea:cstring:s 2502:anyarray_recv:anyarray:internal:s 2503:anyarray_send:bytea:anyarray:s
2517:bool_and:bool:bool:na 2518:bool_or:bool:bool:na 2519:every:bool:bool:na
2520:timestamp_lt_timestamptz:bool:timestamp,timestamptz:s 2521:timestamp_le_timestamptz:bool:timestamp,timestamptz:s
2522:timestamp_eq_timestamptz:bool:timestamp,timestamptz:s 2523:timestamp_gt_timestamptz:bool:timestamp,timestamptz:s
2524:timestamp_ge_timestamptz:bool:timestamp,timestamptz:s 2525:timestamp_ne_timestamptz:bool:timestamp,timestamptz:s
2526:timestamp_cmp_timestamptz:int4:timestamp,timestamptz:s 2527:timestamptz_lt_timestamp:bool:timestamptz,timestamp:s
2528:timestamptz_le_timestamp:bool:timestamptz,timestamp:s 2529:timestamptz_eq_timestamp:bool:timestamptz,timestamp:s
2530:timestamptz_gt_timestamp:bool:timestamptz,timestamp:s 2531:timestamptz_ge_timestamp:bool:timestamptz,timestamp:s
2532:timestamptz_ne_timestamp:bool:timestamptz,timestamp:s 2533:timestamptz_cmp_timestamp:int4:timestamptz,timestamp:s
2546:interval_pl_date:timestamp:interval,date 2547:interval_pl_timetz:timetz:interval,timetz
2548:interval_pl_timestamp:timestamp:interval,timestamp
2549:interval_pl_timestamptz:timestamptz:interval,timestamptz:s 2550:integer_pl_date:date:int4,date
2557:bool:bool:int4 2558:int4:int4:bool 2580:float8:float8:jsonb 2641:var_samp:numeric:int8:na
2642:var_samp:numeric:int4:na 2643:var_samp:numeric:int2:na 2644:var_samp:float8:float4:na
2645:var_samp:float8:float8:na 2646:var_samp:numeric:numeric:na 2712:stddev_samp:numeric:int8:na
2713:stddev_samp:numeric:int4:na 2714:stddev_samp:numeric:int2:na 2715:stddev_samp:float8:float4:na
2716:stddev_samp:float8:float8:na 2717:stddev_samp:numeric:numeric:na 2718:var_pop:numeric:int8:na
2719:var_pop:numeric:int4:na 2720:var_pop:numeric:int2:na 2721:var_pop:float8:float4:na 2722:var_pop:float8:float8:na
2723:var_pop:numeric:numeric:na 2724:stddev_pop:numeric:int8:na 2725:stddev_pop:numeric:int4:na
2726:stddev_pop:numeric:int2:na 2727:stddev_pop:float8:float4:na 2728:stddev_pop:float8:float8:na
2729:stddev_pop:numeric:numeric:na 2747:arrayoverlap:bool:anyarray,anyarray 2748:arraycontains:bool:anyarray,anyarray
2749:arraycontained:bool:anyarray,anyarray 2803:count:int8::na 2818:regr_count:int8:float8,float8:na
2819:regr_sxx:float8:float8,float8:na 2820:regr_syy:float8:float8,float8:na 2821:regr_sxy:float8:float8,float8:na
2822:regr_avgx:float8:float8,float8:na 2823:regr_avgy:float8:float8,float8:na 2824:regr_r2:float8:float8,float8:na
2825:regr_slope:float8:float8,float8:na 2826:regr_intercept:float8:float8,float8:na
2827:covar_pop:float8:float8,float8:na 2828:covar_samp:float8:float8,float8:na 2829:corr:float8:float8,float8:na
2903:intervaltypmodin:int4:_cstring 2904:intervaltypmodout:cstring:int4 2905:timestamptypmodin:int4:_cstring
2906:timestamptypmodout:cstring:int4 2907:timestamptztypmodin:int4:_cstring 2908:timestamptztypmodout:cstring:int4
2909:timetypmodin:int4:_cstring 2910:timetypmodout:cstring:int4 2911:timetztypmodin:int4:_cstring
2912:timetztypmodout:cstring:int4 2913:bpchartypmodin:int4:_cstring 2914:bpchartypmodout:cstring:int4
2915:varchartypmodin:int4:_cstring 2916:varchartypmodout:cstring:int4 2917:numerictypmodin:int4:_cstring
2918:numerictypmodout:cstring:int4 2952:uuid_in:uuid:cstring 2953:uuid_out:cstring:uuid 2954:uuid_lt:bool:uuid,uuid
2955:uuid_le:bool:uuid,uuid 2956:uuid_eq:bool:uuid,uuid 2957:uuid_ge:bool:uuid,uuid 2958:uuid_gt:bool:uuid,uuid
2959:uuid_ne:bool:uuid,uuid 2960:uuid_cmp:int4:uuid,uuid 2961:uuid_recv:uuid:internal 2962:uuid_send:bytea:uuid
2971:text:text:bool 2981:record_eq:bool:record,record 2982:record_ne:bool:record,record
2983:record_lt:bool:record,record 2984:record_gt:bool:record,record 2985:record_le:bool:record,record
2986:record_ge:bool:record,record 2987:btrecordcmp:int4:record,record 3100:row_number:int8::nw 3101:rank:int8::nw
3102:dense_rank:int8::nw 3103:percent_rank:float8::nw 3104:cume_dist:float8::nw 3105:ntile:int4:int4:w
3106:lag:anyelement:anyelement:w 3107:lag:anyelement:anyelement,int4:w
3108:lag:anycompatible:anycompatible,int4,anycompatible:w 3109:lead:anyelement:anyelement:w
3110:lead:anyelement:anyelement,int4:w 3111:lead:anycompatible:anycompatible,int4,anycompatible:w
3112:first_value:anyelement:anyelement:w 3113:last_value:anyelement:anyelement:w
3114:nth_value:anyelement:anyelement,int4:w 3120:void_recv:void:internal 3121:void_send:bytea:void
3129:btint2sortsupport:void:internal 3130:btint4sortsupport:void:internal 3131:btint8sortsupport:void:internal
3132:btfloat4sortsupport:void:internal 3133:btfloat8sortsupport:void:internal 3134:btoidsortsupport:void:internal
3135:btnamesortsupport:void:internal 3136:date_sortsupport:void:internal 3137:timestamp_sortsupport:void:internal
3175:json_agg:json:anyelement:sna 3197:json_object_agg:json:any,any:sna 3214:jsonb_object_field_text:text:jsonb,text
3215:jsonb_array_element:jsonb:jsonb,int4 3216:jsonb_array_element_text:text:jsonb,int4
3217:jsonb_extract_path:jsonb:jsonb,_text 3255:bttextsortsupport:void:internal 3267:jsonb_agg:jsonb:anyelement:sna
3270:jsonb_object_agg:jsonb:any,any:na 3283:numeric_sortsupport:void:internal 3300:uuid_sortsupport:void:internal
3301:jsonb_concat:jsonb:jsonb,jsonb 3302:jsonb_delete:jsonb:jsonb,text 3303:jsonb_delete:jsonb:jsonb,int4
3304:jsonb_delete_path:jsonb:jsonb,_text 3328:bpchar_sortsupport:void:internal 3331:bytea_sortsupport:void:internal
3343:jsonb_delete:jsonb:jsonb,_text 3437:prefixsel:float8:internal,oid,internal,int4:s
3438:prefixjoinsel:float8:internal,oid,internal,int2,internal:s 3449:numeric:numeric:jsonb 3450:int2:int2:jsonb
3451:int4:int4:jsonb 3452:int8:int8:jsonb 3453:float4:float4:jsonb 3478:jsonb_object_field:jsonb:jsonb,text
3504:anyenum_in:anyenum:cstring 3505:anyenum_out:cstring:anyenum:s 3506:enum_in:anyenum:cstring,oid:s
3507:enum_out:cstring:anyenum:s 3508:enum_eq:bool:anyenum,anyenum 3509:enum_ne:bool:anyenum,anyenum
3510:enum_lt:bool:anyenum,anyenum 3511:enum_gt:bool:anyenum,anyenum 3512:enum_le:bool:anyenum,anyenum
3513:enum_ge:bool:anyenum,anyenum 3514:enum_cmp:int4:anyenum,anyenum 3526:max:anyenum:anyenum:na
3527:min:anyenum:anyenum:na 3532:enum_recv:anyenum:internal,oid:s 3533:enum_send:bytea:anyenum:s
3538:string_agg:text:text,text:na 3545:string_agg:bytea:bytea,bytea:na 3556:bool:bool:jsonb
3696:starts_with:bool:text,text 3803:jsonb_send:bytea:jsonb 3804:jsonb_out:cstring:jsonb
3805:jsonb_recv:jsonb:internal 3806:jsonb_in:jsonb:cstring 3816:array_typanalyze:bool:internal:s
3817:arraycontsel:float8:internal,oid,internal,int4:s
3818:arraycontjoinsel:float8:internal,oid,internal,int2,internal:s 3940:jsonb_extract_path_text:text:jsonb,_text
3947:json_object_field:json:json,text 3948:json_object_field_text:text:json,text
3949:json_array_element:json:json,int4 3950:json_array_element_text:text:json,int4
3951:json_extract_path:json:json,_text 3953:json_extract_path_text:text:json,_text
3972:percentile_disc:anyelement:float8,anyelement:na 3974:percentile_cont:float8:float8,float8:na
3976:percentile_cont:interval:float8,interval:na 3978:percentile_disc:anyarray:_float8,anyelement:na
3980:percentile_cont:_float8:_float8,float8:na 3982:percentile_cont:_interval:_float8,interval:na
3984:mode:anyelement:anyelement:na 3986:rank:int8:any:na 3988:percent_rank:float8:any:na 3990:cume_dist:float8:any:na
3992:dense_rank:int8:any:na 4038:jsonb_ne:bool:jsonb,jsonb 4039:jsonb_lt:bool:jsonb,jsonb
4040:jsonb_gt:bool:jsonb,jsonb 4041:jsonb_le:bool:jsonb,jsonb 4042:jsonb_ge:bool:jsonb,jsonb
4043:jsonb_eq:bool:jsonb,jsonb 4044:jsonb_cmp:int4:jsonb,jsonb 4046:jsonb_contains:bool:jsonb,jsonb
4047:jsonb_exists:bool:jsonb,text 4048:jsonb_exists_any:bool:jsonb,_text 4049:jsonb_exists_all:bool:jsonb,_text
4050:jsonb_contained:bool:jsonb,jsonb 4053:array_agg:anyarray:anyarray:na 4084:regnamespacein:regnamespace:cstring:s
4085:regnamespaceout:cstring:regnamespace:s 4087:regnamespacerecv:regnamespace:internal
4088:regnamespacesend:bytea:regnamespace 4092:regroleout:cstring:regrole:s 4094:regrolerecv:regrole:internal
4095:regrolesend:bytea:regrole 4098:regrolein:regrole:cstring:s 4126:in_range:bool:int8,int8,int8,bool,bool
4127:in_range:bool:int4,int4,int8,bool,bool 4128:in_range:bool:int4,int4,int4,bool,bool
4129:in_range:bool:int4,int4,int2,bool,bool 4130:in_range:bool:int2,int2,int8,bool,bool
4131:in_range:bool:int2,int2,int4,bool,bool 4132:in_range:bool:int2,int2,int2,bool,bool
4136:in_range:bool:interval,interval,interval,bool,bool 4139:in_range:bool:float8,float8,float8,bool,bool
4140:in_range:bool:float4,float4,float8,bool,bool 4141:in_range:bool:numeric,numeric,numeric,bool,bool
5040:matchingsel:float8:internal,oid,internal,int4:s 5041:matchingjoinsel:float8:internal,oid,internal,int2,internal:s
5050:btvarstrequalimage:bool:oid 5051:btequalimage:bool:oid 5086:anycompatible_in:anycompatible:cstring
5087:anycompatible_out:cstring:anycompatible 5088:anycompatiblearray_in:anycompatiblearray:cstring
5089:anycompatiblearray_out:cstring:anycompatiblearray:s 5090:anycompatiblearray_recv:anycompatiblearray:internal:s
5091:anycompatiblearray_send:bytea:anycompatiblearray:s 6098:jsonb_subscript_handler:internal:internal
6164:bit_xor:int2:int2:na 6165:bit_xor:int4:int4:na 6166:bit_xor:int8:int8:na
6179:array_subscript_handler:internal:internal 6180:raw_array_subscript_handler:internal:internal
"""

#: Each a type with the object ids of the functions that read and write it as text, those that do so in binary, those
#: of its modifiers, that of its statistics and that of its subscripts; then its alignment and storage, and whether it
#: is passed by value (`v`) and is preferred in its category (`p`).
_TYPES = """
bool:1242:1243:2436:2437:0:0:0:0:cpvp bytea:1244:31:2412:2413:0:0:0:0:ix char:1245:33:2434:2435:0:0:0:0:cpv
name:34:35:2422:2423:0:0:0:6180:cp int8:460:461:2408:2409:0:0:0:0:dpv int2:38:39:2404:2405:0:0:0:0:spv
int2vector:40:41:2410:2411:0:0:0:6179:ip int4:42:43:2406:2407:0:0:0:0:ipv regproc:44:45:2444:2445:0:0:0:0:ipv
text:46:47:2414:2415:0:0:0:0:ixp oid:1798:1799:2418:2419:0:0:0:0:ipvp xid:50:51:2440:2441:0:0:0:0:ipv
oidvector:54:55:2420:2421:0:0:0:6179:ip json:321:322:323:324:0:0:0:0:ix pg_node_tree:195:196:197:198:0:0:0:0:ix
table_am_handler:267:268:0:0:0:0:0:0:ipv index_am_handler:326:327:0:0:0:0:0:0:ipv float4:200:201:2424:2425:0:0:0:0:ipv
float8:214:215:2426:2427:0:0:0:0:dpvp unknown:109:110:2416:2417:0:0:0:0:cp aclitem:1031:1032:0:0:0:0:0:0:ip
bpchar:1044:1045:2430:2431:2913:2914:0:0:ix varchar:1046:1047:2432:2433:2915:2916:0:0:ix
date:1084:1085:2468:2469:0:0:0:0:ipv time:1143:1144:2470:2471:2909:2910:0:0:dpv
timestamp:1312:1313:2474:2475:2905:2906:0:0:dpv timestamptz:1150:1151:2476:2477:2907:2908:0:0:dpvp
interval:1160:1161:2478:2479:2903:2904:0:0:dpp timetz:1350:1351:2472:2473:2911:2912:0:0:dp
numeric:1701:1702:2460:2461:2917:2918:0:0:im regprocedure:2212:2213:2446:2447:0:0:0:0:ipv
regoperator:2216:2217:2450:2451:0:0:0:0:ipv regclass:2218:2219:2452:2453:0:0:0:0:ipv
regtype:2220:2221:2454:2455:0:0:0:0:ipv record:2290:2291:2402:2403:0:0:0:0:dx cstring:2292:2293:2500:2501:0:0:0:0:cp
any:2294:2295:0:0:0:0:0:0:ipv anyarray:2296:2297:2502:2503:0:0:0:0:dx void:2298:2299:3120:3121:0:0:0:0:ipv
trigger:2300:2301:0:0:0:0:0:0:ipv internal:2304:2305:0:0:0:0:0:0:dpv anyelement:2312:2313:0:0:0:0:0:0:ipv
uuid:2952:2953:2961:2962:0:0:0:0:cp anyenum:3504:3505:0:0:0:0:0:0:ipv jsonb:3806:3804:3805:3803:0:0:0:6098:ix
regnamespace:4084:4085:4087:4088:0:0:0:0:ipv regrole:4098:4092:4094:4095:0:0:0:0:ipv
anycompatible:5086:5087:0:0:0:0:0:0:ipv anycompatiblearray:5088:5089:5090:5091:0:0:0:0:dx
"""


@dataclass(frozen=True, slots=True)
class PostgresFunction:
    """A function.

    Attributes:
        id: Its object id.
        name: Its name.
        result: The name of its result's type.
        arguments: The names of its arguments' types.
        volatility: `pg_proc.provolatile`.
        is_strict: Whether it is NULL where an argument is.
        kind: `pg_proc.prokind`.
    """

    id: int
    name: str
    result: str
    arguments: tuple[str, ...]
    volatility: str
    is_strict: bool
    kind: str


@dataclass(frozen=True, slots=True)
class TypeFunctions:
    """How a type is stored, and the object ids of its functions.

    Attributes:
        functions: Those of input, output, receive, send, modifiers in and out, statistics and subscripts; 0 for none.
        alignment: `pg_type.typalign`.
        storage: `pg_type.typstorage`.
        by_value: `pg_type.typbyval`.
        is_preferred: `pg_type.typispreferred`.
    """

    functions: tuple[int, ...]
    alignment: str
    storage: str
    by_value: bool
    is_preferred: bool


def _function(text: str) -> PostgresFunction:
    id, name, result, arguments, flags = (*text.split(":"), "")[:5]
    volatility = "s" if "s" in flags else "v" if "v" in flags else "i"
    types = tuple(arguments.split(",")) if arguments else ()
    kind = "a" if "a" in flags else "w" if "w" in flags else "f"
    return PostgresFunction(int(id), name, result, types, volatility, "n" not in flags, kind)


def _type(text: str) -> tuple[str, TypeFunctions]:
    name, *ids, stored = text.split(":")
    flags = stored[2:]
    return name, TypeFunctions(tuple(map(int, ids)), stored[0], stored[1], "v" in flags, "p" in flags)


POSTGRES_FUNCTIONS = tuple(map(_function, _FUNCTIONS.split()))
TYPE_FUNCTIONS: Mapping[str, TypeFunctions] = dict(map(_type, _TYPES.split()))
